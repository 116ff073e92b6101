// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cases.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/diagnose/request.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

namespace tensorcraft::test {
namespace {

using Json = nlohmann::json;
using Names = std::map<std::string, int64_t>;
constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xa5}, kPoison{0xff};

int64_t integer(const Json& j, const Names& names) {
  if (j.is_number_integer()) return j.get<int64_t>();
  const auto text = j.get<std::string>();
  if (const auto it = names.find(text); it != names.end()) return it->second;
  fail(ErrorKind::value, "cases: \"", text, "\" is not a name of the sweep");
}

Dims dims(const Json& j, const Names& names) {
  Dims d;
  for (const Json& item : j)
    if (item != "...") d.push_back(integer(item, names));
  return d;
}

Json fill_of(Json fill, const Names& names) {
  if (!fill.is_object()) return fill;
  for (const auto& [key, value] : fill.items())
    if (key != "kind" && value.is_string()) value = integer(value, names);
  return fill;
}

TensorCase tensor(const Json& j, DType dtype, const Names& names) {
  TensorCase t;
  t.dtype = dtype;
  if (j.contains("dtype")) t.dtype = parse_dtype(j["dtype"].get<std::string>()).value();
  if (j.contains("shape")) t.shape = dims(j["shape"], names);  // outputs get theirs from infer()
  if (j.contains("strides")) t.strides = dims(j["strides"], names);
  t.offset = j.contains("offset") ? integer(j["offset"], names) : 0;
  if (j.contains("fill")) t.fill = fill_of(j["fill"], names);
  return t;
}

TensorCase absent_tensor() {
  const TensorView absent = op::absent_input(Device::cpu());
  TensorCase t;
  t.dtype = absent.dtype();
  t.shape = absent.shape();
  return t;
}

Json scalar(const Json& j, const Names& names) {
  if (j.is_object()) {  // settings
    std::string text;
    for (const auto& [name, value] : j.items()) {
      const Json part = scalar(value, names);
      text += join(text.empty() ? "" : ", ", name, "=",
                   part.is_string() ? part.get<std::string>() : part.dump());
    }
    return text;
  }
  if (j.is_array()) {
    Json items = Json::array();
    for (const Json& item : j) items.push_back(scalar(item, names));
    return items;
  }
  if (!j.is_string()) return j;
  const auto it = names.find(j.get<std::string>());
  return it == names.end() ? j : Json(it->second);
}

Case make_case(const op::Operator& op, const Json& j, DType dtype, const Names& names) {
  const auto& d = op.description();
  Case c;
  c.op = &op;
  c.dtype = dtype;
  c.name = join(d.name, "/", j.at("name").get<std::string>());
  for (const auto& [name, value] : names) c.name += join("/", name, "=", value);
  c.name += join("/", dtype);
  for (const auto& p : d.inputs)
    if (!p.optional || j.at("inputs").contains(std::string(p.name)))
      c.inputs.push_back(tensor(j.at("inputs").at(std::string(p.name)), dtype, names));
    else if (!p.named)
      c.inputs.push_back(absent_tensor());
  const Json given = j.value("options", Json::object());
  for (const auto& [key, value] : given.items())
    if (std::none_of(d.options.begin(), d.options.end(),
                     [&](const auto& p) { return p.name == key; }))
      fail(ErrorKind::value, c.name, ": there is no option \"", key, "\"");
  for (const auto& p : d.options) {
    const Json value = given.value(std::string(p.name), Json());
    const bool is_tensor = (p.kind == op::ParameterKind::tensor && !value.is_null()) ||
                           (p.or_tensor && value.is_object());
    c.options.push_back(is_tensor ? Json() : scalar(value, names));
    c.tensors.push_back(is_tensor ? std::optional(tensor(value, dtype, names)) : std::nullopt);
  }
  const Json outputs = j.value("outputs", Json::object());
  for (const auto& o : d.outputs) {
    const std::string name(o.name);
    c.outputs.push_back(outputs.contains(name) ? std::optional(tensor(outputs[name], dtype, names))
                                               : std::nullopt);
  }
  for (const Json& tag : j.value("tags", Json::array({"conformance"}))) c.tags.push_back(tag);
  if (j.contains("reduction")) c.reduction = double(integer(j["reduction"], names));
  c.rounds_inside = j.value("rounds_inside", false);
  c.rounds_to_tf32 = j.value("rounds_to_tf32", false);
  c.code_steps = j.value("code_steps", 0.0);
  return c;
}

// Every combination of the sweep's values.
std::vector<Names> combinations(const Json& sweep) {
  std::vector<Names> all{{}};
  for (const auto& [name, values] : sweep.items()) {
    std::vector<Names> next;
    for (const Names& so_far : all)
      for (const Json& v : values) {
        Names n = so_far;
        n[name] = v.get<int64_t>();
        next.push_back(std::move(n));
      }
    all = std::move(next);
  }
  return all;
}

// Elements from the first to one past the last that a layout touches; negative strides are refused
// by the tensors themselves.
int64_t span_of(const TensorCase& t) {
  if (num_elements(t.shape) == 0) return 0;
  const Dims strides = t.strides.empty() ? contiguous_strides(t.shape) : t.strides;
  int64_t last = 0;
  for (int i = 0; i < t.shape.rank(); ++i) last += (t.shape[i] - 1) * strides[i];
  return last + 1;
}

TensorView at(const TensorCase& t, std::byte* base, Device device) {
  const Dims strides = t.strides.empty() ? contiguous_strides(t.shape) : t.strides;
  return {base + kGuardBytes + size_t(t.offset) * dtype_bytes(t.dtype), t.dtype, t.shape, strides,
          device};
}

// f(offset in elements) for every element of a view.
template <class F>
void for_each_offset(const TensorView& t, F&& f) {
  for (int64_t i = 0; i < t.size(); ++i) {
    int64_t rest = i, offset = 0;
    for (int a = t.rank() - 1; a >= 0; --a) {
      offset += rest % t.shape(a) * t.stride(a);
      rest /= t.shape(a);
    }
    f(offset);
  }
}

// A dtype option; an upcast run asks for float32 in the place of the other floats, but for codes:
// those of a norm are its result.
DType wanted_dtype(const Case& c, const std::string& name, bool upcast) {
  const DType dtype = parse_dtype(name).value();
  return upcast && is_floating(dtype) && c.code_steps == 0 ? DType::float32 : dtype;
}

// An option that is no tensor. Strings stay in the case.
op::Value option_value(const Case& c, size_t i, bool upcast) {
  const Json& j = c.options[i];
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_array() && !j.empty() && j[0].is_array()) {
    std::vector<Dims> all;
    for (const Json& list : j) all.push_back(dims(list, {}));
    return all;
  }
  if (j.is_array()) return dims(j, {});
  if (!j.is_string()) return {};
  const auto& text = j.get_ref<const std::string&>();
  if (c.op->description().options[i].kind == op::ParameterKind::named_values) {
    static std::map<std::string, std::vector<op::NamedValue>> read;  // the keys hold the names
    const auto [known, is_new] = read.try_emplace(text);
    if (is_new) known->second = diagnose::parse_named_values(c.name, known->first);
    return op::NamedValues(known->second);
  }
  if (c.op->description().options[i].kind == op::ParameterKind::dtype)
    // The scales of quantize depend on what it rounds to, so its reference rounds too.
    return wanted_dtype(c, text, upcast && c.op->description().name != "quantize");
  return std::string_view(text);
}

// The result of infer(), laid out as the case says.
TensorCase output_layout(const Case& c, const op::OutputSpec& spec) {
  TensorCase layout{spec.dtype, spec.shape, {}, 0, {}};
  for (size_t o = 0; o < c.outputs.size(); ++o)
    if (c.outputs[o] && c.op->description().outputs[o].name == spec.name) {
      layout.strides = c.outputs[o]->strides;
      layout.offset = c.outputs[o]->offset;
    }
  return layout;
}

double draw(const Json& how, DType dtype, std::mt19937_64& random, int64_t index) {
  const std::string kind = how.is_string()   ? how.get<std::string>()
                           : how.is_object() ? how.at("kind").get<std::string>()
                                             : "";
  const auto number = [&](const char* key, double fallback) {
    return how.is_object() ? how.value(key, fallback) : fallback;
  };
  if (kind == "constant") return number("value", 0);
  if (kind == "arange") return number("start", 0) + double(index) * number("step", 1);
  if (kind == "offsets")
    return double(index * int64_t(number("stored", 0)) / int64_t(number("count", 2) - 1));
  if (kind == "uniform" || (kind.empty() && !is_floating(dtype))) {
    const bool whole = !is_floating(dtype);
    const double low = number("low", whole ? 0 : -1), high = number("high", whole ? 9 : 1);
    if (whole)
      return double(std::uniform_int_distribution<int64_t>(int64_t(low), int64_t(high))(random));
    return std::uniform_real_distribution<double>(low, high)(random);
  }
  if (kind == "list")
    return how.at("values").at(size_t(index) % how.at("values").size()).get<double>();
  if (kind == "special") {  // normal values with NaN, infinities, zeros and extremes among them
    constexpr double values[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 1e-40, 6e4, -6e4};
    if (random() % 4 == 0) return values[random() % std::size(values)];
  } else if (kind != "normal" && !kind.empty()) {
    fail(ErrorKind::value, "cases: fill \"", kind, "\" is not known");
  }
  return std::normal_distribution<double>(number("mean", 0), number("std", 1))(random);
}

// Is it one of the products of matrices, grouped or not?
bool is_product(const Case& c) {
  const std::string_view name = c.op->description().name;
  return name == "gemm" || name == "grouped_gemm" || name == "masked_gemm";
}

// Returns the operators of those entries of a file that do not name one themselves.
Json operators_of(const Json& file) {
  return file.contains("operators") ? file["operators"] : Json::array({file.value("operator", "")});
}

// dequantize takes narrow types alone, attention and products scale them, packed_gemm means others
// by wider ones.
bool keeps_narrow(const Case& c, DType dtype) {
  const std::string_view name = c.op->description().name;
  return dtype_bytes(dtype) == 1 &&
         (name == "dequantize" || name == "attention" || name == "packed_gemm" || is_product(c));
}

}  // namespace

bool Case::has_tag(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

std::vector<Case> cases_of(const Json& file) {
  std::vector<Case> all;
  for (const Json& j : file.at("cases"))
    for (const Json& name : j.value("operators", operators_of(file))) {
      const op::Operator& op = find_operator(name.get<std::string>());
      for (const Names& names : combinations(j.value("sweep", Json::object())))
        for (const Json& dtype : j.value("dtypes", Json::array({"float32"})))
          all.push_back(make_case(op, j, parse_dtype(dtype.get<std::string>()).value(), names));
    }
  return all;
}

std::vector<Json> entries_of_all_files(const std::string& list) {
  // The folder of the tests' source, or below the working directory for a build carried elsewhere.
  const std::string built = TENSORCRAFT_CASES;
  const std::string folder = std::filesystem::exists(built) ? built : "tests/ops/cases";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Json> all;
  for (const auto& path : paths) {
    std::ifstream in(path);
    if (!in) fail(ErrorKind::not_found, "cases file ", path.string(), " cannot be read");
    const Json file = Json::parse(in);
    for (const Json& entry : file.value(list, Json::array())) {
      all.push_back(entry);
      if (!entry.contains("operators")) all.back()["operators"] = operators_of(file);
    }
  }
  return all;
}

std::vector<Case> all_cases() { return cases_of({{"cases", entries_of_all_files("cases")}}); }

std::vector<Case> valid_calls(DType dtype, int64_t size) {
  std::vector<Json> calls = entries_of_all_files("calls");
  for (Json& call : calls) {
    call["name"] = "call";
    call["dtypes"] = {std::string(to_string(dtype))};
    for (Json& sizes : call["sweep"]) sizes = {size};
  }
  return cases_of({{"cases", calls}});
}

ImaginedCall::ImaginedCall(const Case& c, Device device) {
  uintptr_t allocations = 0;
  const auto view = [&](const TensorCase& t) {
    return at(t, reinterpret_cast<std::byte*>(++allocations << 40), device);
  };
  for (const TensorCase& t : c.inputs) inputs.push_back(view(t));
  for (size_t i = 0; i < c.options.size(); ++i)
    options.push_back(c.tensors[i] ? view(*c.tensors[i]) : option_value(c, i, false));
  specs = c.op->infer(arguments());
  for (const op::OutputSpec& spec : specs) outputs.push_back(view(output_layout(c, spec)));
}

namespace {

void make_read_only(std::vector<TensorView>& inputs, std::vector<op::Value>& options) {
  for (TensorView& t : inputs) t = t.as_read_only();
  for (op::Value& o : options)
    if (auto* const t = std::get_if<TensorView>(&o)) *t = t->as_read_only();
}

}  // namespace

void ImaginedCall::make_inputs_read_only() { make_read_only(inputs, options); }
void CaseRun::make_inputs_read_only() { make_read_only(input_views_, options_); }

std::vector<op::OutputSpec> infer_case(const Case& c) {
  return ImaginedCall(c, Device::cpu()).specs;
}

op::Explanation explain_case(const Case& c, const DeviceInfo& device) {
  const ImaginedCall call(c, device.device);
  return c.op->explain(call.outputs, call.arguments(), device);
}

GuardedTensor::GuardedTensor(const TensorCase& layout, Device device)
    : layout_(layout),
      device_(device),
      expected_(
          size_t(span_of(layout) + layout.offset) * dtype_bytes(layout.dtype) + 2 * kGuardBytes,
          kGuard),
      memory_(DType::uint8, {int64_t(expected_.size())}, device),
      view_(at(layout, memory_.data_as<std::byte>(), device)) {
  upload();
}

void GuardedTensor::upload() { memory_.copy_from_host(expected_.data(), expected_.size()); }

std::vector<std::byte> GuardedTensor::download() const {
  std::vector<std::byte> bytes(expected_.size());
  memory_.copy_to_host(bytes.data(), bytes.size());
  return bytes;
}

void GuardedTensor::fill(const Json& how, uint64_t seed) {
  std::mt19937_64 random(seed);
  const host::Elements elements(at(layout_, expected_.data(), Device::cpu()));
  for (int64_t i = 0; i < view_.size(); ++i) elements.set(i, draw(how, layout_.dtype, random, i));
  upload();
}

void GuardedTensor::set_values(const std::vector<float>& values) {
  const host::Elements elements(at(layout_, expected_.data(), Device::cpu()));
  for (size_t i = 0; i < values.size(); ++i) elements.set(int64_t(i), double(values[i]));
  upload();
}

void GuardedTensor::poison() {
  const TensorView host = at(layout_, expected_.data(), Device::cpu());
  const size_t bytes = dtype_bytes(layout_.dtype);
  for_each_offset(host, [&](int64_t offset) {
    std::fill_n(host.data_as<std::byte>() + size_t(offset) * bytes, bytes, kPoison);
  });
  upload();
}

std::vector<float> GuardedTensor::values() const {
  auto bytes = download();
  const host::Elements elements(at(layout_, bytes.data(), Device::cpu()));
  std::vector<float> result(size_t(view_.size()));
  for (size_t i = 0; i < result.size(); ++i) result[i] = float(elements[int64_t(i)]);
  return result;
}

bool GuardedTensor::untouched(bool inside) const {
  auto now = download();
  if (inside) return now == expected_;
  // Elements of the view may differ; everything between and around them may not.
  const TensorView was = at(layout_, const_cast<std::byte*>(expected_.data()), Device::cpu());
  const TensorView is = at(layout_, now.data(), Device::cpu());
  const size_t bytes = dtype_bytes(layout_.dtype);
  for_each_offset(was, [&](int64_t offset) {
    std::memcpy(is.data_as<std::byte>() + size_t(offset) * bytes,
                was.data_as<std::byte>() + size_t(offset) * bytes, bytes);
  });
  return now == expected_;
}

CaseRun::CaseRun(const Case& c, Device device, bool upcast) : case_(c) {
  const uint64_t seed = std::hash<std::string>{}(c.name);
  // Upcast tensors are row-major float32 with exactly the values of the dtype.
  const auto make = [&](std::deque<GuardedTensor>& into, const TensorCase& t,
                        uint64_t salt) -> GuardedTensor& {
    GuardedTensor& original = into.emplace_back(t, upcast ? Device::cpu() : device);
    original.fill(t.fill, seed + salt);
    if (!upcast || !is_floating(t.dtype)) return original;
    if (keeps_narrow(c, t.dtype)) return original;
    const auto values = original.values();
    TensorCase wide{DType::float32, t.shape, {}, 0, {}};
    into.pop_back();
    GuardedTensor& exact = into.emplace_back(wide, Device::cpu());
    exact.set_values(values);
    return exact;
  };
  for (size_t i = 0; i < c.inputs.size(); ++i) make(inputs_, c.inputs[i], i);
  for (const auto& t : inputs_) input_views_.push_back(t.view());
  for (size_t i = 0; i < c.options.size(); ++i) {
    options_.push_back(c.tensors[i] ? make(tensors_, *c.tensors[i], 100 + i).view()
                                    : option_value(c, i, upcast));
    // Narrow operands of products have wider results, which the reference does not round, but
    // codes.
    const bool is_widened = upcast && is_floating(c.dtype) && c.code_steps == 0 && is_product(c);
    if (is_widened && keeps_narrow(c, c.dtype) &&
        c.op->description().options[i].name == "out_dtype")
      options_.back() = DType::float32;
  }
  for (const op::OutputSpec& spec : c.op->infer(arguments({})))
    outputs_.emplace_back(
        upcast ? TensorCase{spec.dtype, spec.shape, {}, 0, {}} : output_layout(c, spec),
        upcast ? Device::cpu() : device);
}

op::Arguments CaseRun::arguments(std::string_view variant) const {
  return {input_views_, options_, variant, std::nullopt};
}

std::vector<TensorView> CaseRun::outputs() const {
  std::vector<TensorView> views;
  for (const auto& t : outputs_) views.push_back(t.view());
  return views;
}

void CaseRun::poison_outputs() {
  for (auto& t : outputs_) t.poison();
}

std::vector<std::vector<float>> CaseRun::results() const {
  std::vector<std::vector<float>> all;
  for (const auto& t : outputs_) all.push_back(t.values());
  return all;
}

std::string CaseRun::damage() const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].untouched(true))
      return join("input ", case_.op->description().inputs[i].name, " was written to");
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!tensors_[i].untouched(true)) return join("optional input number ", i, " was written to");
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i].untouched(false))
      return join("output number ", i, " was written to outside its elements");
  return {};
}

bool CaseRun::outputs_untouched() const {
  return std::all_of(outputs_.begin(), outputs_.end(),
                     [](const GuardedTensor& t) { return t.untouched(true); });
}

}  // namespace tensorcraft::test
