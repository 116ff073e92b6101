// SPDX-License-Identifier: Apache-2.0
#include "xla.hpp"

#include "arguments.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/warmup.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/ops/all.hpp"
#include "xla_abi.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

constexpr std::pair<xla::Element, DType> kElements[] = {
    {xla::Element::pred, DType::bool_},
    {xla::Element::s8, DType::int8},
    {xla::Element::s16, DType::int16},
    {xla::Element::s32, DType::int32},
    {xla::Element::s64, DType::int64},
    {xla::Element::u8, DType::uint8},
    {xla::Element::f16, DType::float16},
    {xla::Element::f32, DType::float32},
    {xla::Element::bf16, DType::bfloat16},
    {xla::Element::f8e5m2, DType::float8_e5m2},
    {xla::Element::f8e4m3fn, DType::float8_e4m3fn}};

DType dtype_of(xla::Element element) {
  for (const auto& [code, dtype] : kElements)
    if (code == element) return dtype;
  fail(ErrorKind::type, "XLA's dtype of code ", int(element), " is none of TensorCraft");
}

// Names with values, in the call's memory.
class Dictionary {
 public:
  explicit Dictionary(const xla::Attributes& attributes) : all_(attributes) {}
  const xla::Attributes& all() const { return all_; }
  // Null if there is none of that name and kind.
  template <class T>
  const T* find(std::string_view name, xla::Kind kind) const {
    for (int64_t i = 0; i < all_.size; ++i)
      if (*all_.names[i] == name && all_.kinds[i] == kind)
        return static_cast<const T*>(all_.values[i]);
    return nullptr;
  }
  Dictionary at(std::string_view name) const {
    return Dictionary(needed<xla::Attributes>(name, xla::Kind::dictionary));
  }
  std::string_view text(std::string_view name) const {
    return needed<xla::Text>(name, xla::Kind::text);
  }

 private:
  template <class T>
  const T& needed(std::string_view name, xla::Kind kind) const {
    if (const T* found = find<T>(name, kind)) return *found;
    fail(ErrorKind::value, "the call has no attribute ", name,
         "; functions of tensorcraft.jax make such calls");
  }
  const xla::Attributes& all_;
};

op::Value value_of(const xla::Scalar& scalar) {
  switch (scalar.dtype) {
    case xla::Element::pred:
      return *static_cast<const bool*>(scalar.value);
    case xla::Element::s64:
      return *static_cast<const int64_t*>(scalar.value);
    case xla::Element::f64:
      return *static_cast<const double*>(scalar.value);
    default:
      fail(ErrorKind::type, "an attribute is a number of XLA's code ", int(scalar.dtype),
           "; bool, int64 and float64 are taken");
  }
}

Dims dims_of(const xla::Array& array) {
  if (array.dtype != xla::Element::s64)
    fail(ErrorKind::type, "an attribute is a list of XLA's code ", int(array.dtype),
         "; int64 is taken");
  return Dims(std::span(static_cast<const int64_t*>(array.data), array.size));
}

// One call of XLA as the registry takes it. Texts stay in the call's memory.
class FrameCall {
 public:
  FrameCall(const xla::Call& call, Device device)
      : attributes_(call.attributes),
        operator_(find_operator(attributes_.text("operator"))),
        variant_(attributes_.text("variant")),
        device_(device) {
    const Dictionary settings = attributes_.at("settings"), tensors = attributes_.at("tensors");
    for (const op::Parameter& p : operator_.description().options)
      options_.push_back(option(p, settings, tensors, call.arguments));
    for (int64_t i = 0; i < call.arguments.size - tensors.all().size; ++i)
      inputs_.push_back(view(call.arguments, i));
    for (int64_t i = 0; i < call.results.size; ++i) outputs_.push_back(view(call.results, i));
  }

  void run(StreamRef stream) const { operator_.run(outputs_, arguments(stream)); }

  // Compiles and loads what run() launches, as a recording can do neither.
  void prepare() const {
    static constinit FirstMade<std::mutex> mutex;
    static constinit FirstMade<std::unordered_set<std::string>> prepared;
    std::string key = this->key();
    {
      const std::lock_guard lock(*mutex);
      if (prepared->contains(key)) return;
    }
    const op::Explanation e = operator_.explain(
        outputs_, arguments(StreamRef::default_stream(device_.index)), device_info(device_));
    std::vector<jit::KernelKey> kernels;
    for (const op::Considered& c : e.variants)
      if (c.variant.name == e.variant && c.plan)
        for (const op::Step& step : c.plan->steps()) kernels.push_back(step.kernel);
    const jit::WarmupReport report = jit::warmup(kernels, device_);
    if (!report.failures.empty()) fail(ErrorKind::compile, e.op, ": ", report.failures[0].error);
    const std::lock_guard lock(*mutex);
    prepared->insert(std::move(key));
  }

 private:
  op::Arguments arguments(StreamRef stream) const { return {inputs_, options_, variant_, stream}; }
  TensorView view(const xla::Buffers& buffers, int64_t i) const {
    if (i < 0 || i >= buffers.size || buffers.types[i] != xla::kBuffer)
      fail(ErrorKind::value, operator_.description().name, ": the call has no array ", i);
    const xla::Buffer& buffer = *buffers.buffers[i];
    return {buffer.data, dtype_of(buffer.dtype), Dims(std::span(buffer.dims, size_t(buffer.rank))),
            device_};
  }

  op::Value option(const op::Parameter& p, const Dictionary& settings, const Dictionary& tensors,
                   const xla::Buffers& arrays) {
    if (const auto* place = tensors.find<xla::Scalar>(p.name, xla::Kind::scalar))
      return view(arrays, std::get<int64_t>(value_of(*place)));
    if (const auto* scalar = settings.find<xla::Scalar>(p.name, xla::Kind::scalar))
      return value_of(*scalar);
    if (const auto* array = settings.find<xla::Array>(p.name, xla::Kind::array))
      return dims_of(*array);
    if (const auto* text = settings.find<xla::Text>(p.name, xla::Kind::text))
      return p.kind == op::ParameterKind::dtype ? op::Value(named_dtype(*text)) : *text;
    const auto* lists = settings.find<xla::Attributes>(p.name, xla::Kind::dictionary);
    if (!lists) return {};
    if (p.kind == op::ParameterKind::named_values) return named_values(Dictionary(*lists));
    return dims_of_all(Dictionary(*lists));
  }
  static DType named_dtype(std::string_view name) {
    if (const auto dtype = parse_dtype(name)) return *dtype;
    fail(ErrorKind::type, "dtype ", name, " is not supported");
  }
  // Lists by their numbers, as XLA keeps names in an order of its own.
  static std::vector<Dims> dims_of_all(const Dictionary& lists) {
    std::vector<Dims> all;
    while (const auto* list = lists.find<xla::Array>(std::to_string(all.size()), xla::Kind::array))
      all.push_back(dims_of(*list));
    return all;
  }
  op::NamedValues named_values(const Dictionary& values) {
    const Dictionary numbers = values.at("numbers");
    for (std::string_view names = values.text("names"); !names.empty();) {
      const size_t end = std::min(names.find(' '), names.size());
      op::NamedValue& named = named_.emplace_back(op::NamedValue{names.substr(0, end)});
      if (const auto* number = numbers.find<xla::Scalar>(named.name, xla::Kind::scalar))
        std::visit(
            [&]<class T>(const T& n) {
              if constexpr (std::is_arithmetic_v<T>) named.number = n;
            },
            value_of(*number));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return named_;
  }

  // Equal for calls that launch the same kernels.
  std::string key() const {
    CallKey key;
    key.add(&operator_);
    key.add(variant_);
    key.add(device_.index);
    for (const TensorView& t : inputs_) key.add(t);
    for (const TensorView& t : outputs_) key.add(t);
    for (const op::Value& value : options_) key.add(value);
    return std::move(key.bytes);
  }
  struct CallKey {
    std::string bytes{};
    template <class T>
      requires std::is_trivially_copyable_v<T> && std::is_scalar_v<T>
    void add(const T& value) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void add(std::monostate) {}
    void add(std::string_view text) {
      add(text.size());
      bytes.append(text);
    }
    void add(const Dims& dims) {
      add(dims.rank());
      for (const int64_t n : dims) add(n);
    }
    void add(const std::vector<Dims>& all) {
      add(all.size());
      for (const Dims& dims : all) add(dims);
    }
    // Choices look at how addresses are aligned, to 256 bytes at most.
    void add(const TensorView& t) {
      const auto address = reinterpret_cast<uintptr_t>(t.data());
      add(t.dtype());
      add(t.shape());
      add(uint8_t(address & -address));
    }
    void add(op::NamedValues values) {
      add(values.size());
      for (const op::NamedValue& named : values) {
        add(named.name);
        add(named.number.index());
        std::visit([&](const auto& n) { add(n); }, named.number);
      }
    }
    void add(const op::Value& value) {
      add(value.index());
      std::visit([&](const auto& v) { add(v); }, value);
    }
  };

  Dictionary attributes_;
  const op::Operator& operator_;
  std::string_view variant_;
  Device device_;
  std::vector<TensorView> inputs_, outputs_;
  std::vector<op::Value> options_;
  std::vector<op::NamedValue> named_;
};

xla::Code code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value:
    case ErrorKind::type:
    case ErrorKind::index:
    case ErrorKind::key:
    case ErrorKind::axis:
      return xla::Code::invalid_argument;
    case ErrorKind::out_of_memory:
      return xla::Code::resource_exhausted;
    case ErrorKind::unsupported:
      return xla::Code::unimplemented;
    default:
      return xla::Code::internal;
  }
}

xla::Error* error_of(const xla::Call& call, xla::Code code, const char* message) {
  xla::ErrorRequest request{{sizeof(xla::ErrorRequest), nullptr}, message, code};
  return call.api->create_error(&request);
}

// The version of XLA's interface that asked last, "0.3"; empty if none did.
std::string& seen_version() {
  static constinit FirstMade<std::string> version;
  return *version;
}

// Registration asks what a handler is, by a call without arrays.
bool answer_metadata(const xla::Call& call, uint32_t traits) {
  for (const xla::Extension* e = call.head.extensions; e; e = e->next) {
    if (e->type != xla::kMetadata) continue;
    xla::Metadata& metadata = *reinterpret_cast<const xla::MetadataExtension*>(e)->metadata;
    const xla::Version& theirs = call.api->version;
    seen_version() = join(theirs.major, ".", theirs.minor);
    metadata.version.major = xla::kMajor;
    metadata.version.minor =
        theirs.major == xla::kMajor ? std::min(theirs.minor, xla::kMinor) : xla::kMinor;
    metadata.traits = traits;
    return true;
  }
  return false;
}

void check_frame(const xla::Call& call) {
  if (call.api->version.major == xla::kMajor && call.head.bytes >= sizeof(xla::Call)) return;
  fail(ErrorKind::unsupported, "XLA's calls have version ", call.api->version.major, ".",
       call.api->version.minor, " and ", call.head.bytes, " bytes, and TensorCraft reads those of ",
       xla::kMajor, ".", xla::kMinor, "; use another version of jax");
}

Device cuda_device_of(const xla::Call& call) {
  xla::DeviceRequest request{{sizeof(xla::DeviceRequest), nullptr}, call.context, 0};
  if (call.api->head.bytes < sizeof(xla::Api) || call.api->get_device(&request))
    fail(ErrorKind::unsupported, "XLA does not say on which GPU a call is; use a newer jax");
  return Device::cuda(request.device);
}

StreamRef stream_of(const xla::Call& call, Device device) {
  xla::StreamRequest request{{sizeof(xla::StreamRequest), nullptr}, call.context, nullptr};
  if (call.api->get_stream(&request))
    fail(ErrorKind::internal, "XLA does not say on which stream a call is");
  return StreamRef(static_cast<CUstream_st*>(request.stream), device.index);
}

template <class Work>
xla::Error* handled(xla::Call* call, uint32_t traits, Work work) {
  try {
    if (answer_metadata(*call, traits)) return nullptr;
    check_frame(*call);
    work(*call);
    return nullptr;
  } catch (const Error& e) {
    return error_of(*call, code_of(e.kind()), e.what());
  } catch (const std::exception& e) {
    return error_of(*call, xla::Code::internal, e.what());
  }
}

xla::Error* run_on_cpu(xla::Call* call) {
  return handled(call, 0, [](const xla::Call& c) { FrameCall(c, Device::cpu()).run({}); });
}

// The launches of a call follow from its arrays' shapes and its settings alone.
xla::Error* run_on_cuda(xla::Call* call) {
  return handled(call, xla::kMayBeRecorded, [](const xla::Call& c) {
    const Device device = cuda_device_of(c);
    FrameCall(c, device).run(stream_of(c, device));
  });
}

xla::Error* prepare_on_cuda(xla::Call* call) {
  return handled(call, xla::kMayBeRecorded,
                 [](const xla::Call& c) { FrameCall(c, cuda_device_of(c)).prepare(); });
}

nb::dict handlers(nb::handle platform) {
  const auto capsule = [](xla::Handler* handler) {
    return nb::capsule(reinterpret_cast<const void*>(handler));
  };
  const std::string_view name = to_text(platform, "platform");
  nb::dict stages;
  if (name == "cpu") {
    stages["execute"] = capsule(&run_on_cpu);
  } else if (name == "CUDA") {
    stages["execute"] = capsule(&run_on_cuda);
    stages["initialize"] = capsule(&prepare_on_cuda);
  } else {
    fail(ErrorKind::value, "xla_handlers: there are none for ", name, "; there are cpu and CUDA");
  }
  return stages;
}

}  // namespace

void register_xla(nb::module_& m) {
  m.def("xla_handlers", &handlers, "platform"_a, "XLA's handlers of a platform, by their stage.");
  m.def(
      "xla_versions",
      [] { return nb::make_tuple(join(xla::kMajor, ".", xla::kMinor), seen_version()); },
      "The version of XLA's interface that is spoken, and that of the XLA that asked last.");
}

}  // namespace tensorcraft::python
