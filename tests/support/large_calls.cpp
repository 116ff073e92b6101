// SPDX-License-Identifier: Apache-2.0
#include "tests/support/large_calls.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/tolerance.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

namespace tensorcraft::test {
namespace {

using Json = nlohmann::json;

// Shapes of a call: inputs, tensor options, outputs.
struct Shapes {
  std::vector<op::OutputSpec> inputs, options, outputs;
};

Shapes shapes_of(const Case& c) {
  Shapes s;
  for (const TensorCase& t : c.inputs) s.inputs.push_back({"", t.dtype, t.shape});
  for (const auto& t : c.tensors)
    if (t) s.options.push_back({"", t->dtype, t->shape});
  s.outputs = infer_case(c);
  return s;
}

std::vector<op::OutputSpec> all_of(const Shapes& s) {
  std::vector<op::OutputSpec> all;
  for (const auto* list : {&s.inputs, &s.options, &s.outputs})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

void fill_bytes(const Tensor& t, unsigned char value) {
  if (t.device().is_cuda())
    cuda::fill_async(t.data(), value, t.nbytes(), t.stream());
  else
    std::memset(t.data(), value, t.nbytes());
}

TensorView bytes_at(void* data, int64_t bytes, Device device) {
  return {data, DType::uint8, {bytes}, device};
}

// A tensor on the device that holds some rows, and those rows in a small tensor of the host.
class Rows {
 public:
  Rows(const op::OutputSpec& large, const TensorView& host, const std::vector<int64_t>& rows,
       Device device)
      : tensor_(large.dtype, large.shape, device), host_(host), rows_(rows) {
    for (int axis = 0; axis < host.rank(); ++axis)
      if (host.shape(axis) != large.shape[axis]) axis_ = axis;
  }
  const Tensor& tensor() const { return tensor_; }
  void poison() const { fill_bytes(tensor_, 0xff); }
  void upload() const {
    fill_bytes(tensor_, 0);
    move([&](const TensorView& there, const TensorView& here) {
      copy_bytes(there, here, tensor_.stream());
    });
  }
  void download() const {
    move([&](const TensorView& there, const TensorView& here) {
      copy_bytes(here, there, tensor_.stream());
    });
  }

 private:
  // If nothing is large, the whole tensor is one row.
  template <class F>
  void move(F&& f) const {
    const auto element = int64_t(dtype_bytes(tensor_.dtype()));
    int64_t outer = 1, inner = element;
    for (int i = 0; i < host_.rank(); ++i)
      if (i != axis_) (i < axis_ ? outer : inner) *= host_.shape(i);
    const bool is_large = axis_ >= 0;
    const int64_t count = is_large ? host_.shape(axis_) : 1;
    const int64_t stride = is_large ? tensor_.shape(axis_) : 1;
    for (int64_t o = 0; o < outer && inner > 0; ++o)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = is_large ? rows_[size_t(i)] : 0;
        f(bytes_at(tensor_.data_as<std::byte>() + (o * stride + row) * inner, inner,
                   tensor_.device()),
          bytes_at(host_.data_as<std::byte>() + (o * count + i) * inner, inner, Device::cpu()));
      }
  }

  Tensor tensor_;
  TensorView host_;
  const std::vector<int64_t>& rows_;
  int axis_ = -1;
};

// Both ends, the middle, and what is around 2^31 elements and 2^32 bytes of any tensor.
std::vector<int64_t> sampled_rows(int64_t rows, const std::vector<op::OutputSpec>& tensors) {
  std::set<int64_t> all;
  const auto add = [&](int64_t around) {
    for (int64_t row = around - 1; row <= around + 1; ++row)
      if (row >= 0 && row < rows) all.insert(row);
  };
  for (const int64_t row : {int64_t(0), rows / 3, rows - 1}) add(row);
  for (const op::OutputSpec& t : tensors) {
    const int64_t size = num_elements(t.shape);
    if (size < rows) continue;
    const double row_size = double(size) / double(rows);
    for (const double limit : {0x1p31, 0x1p32 / double(dtype_bytes(t.dtype))})
      add(int64_t(limit / row_size) % rows);
  }
  return {all.begin(), all.end()};
}

// The call on the device, with memory.
struct OnDevice {
  std::deque<Rows> inputs, options, outputs;
  std::vector<TensorView> input_views, output_views;
  std::vector<op::Value> values;
  op::Arguments arguments(std::string_view variant = {}) const {
    return {input_views, values, variant, std::nullopt};
  }
};

void place(OnDevice& call, const Shapes& large, const CaseRun& small,
           const std::vector<int64_t>& rows, Device device) {
  const op::Arguments given = small.arguments({});
  call.values.assign(given.options.begin(), given.options.end());
  for (size_t i = 0; i < large.inputs.size(); ++i)
    call.inputs.emplace_back(large.inputs[i], given.inputs[i], rows, device);
  for (op::Value& value : call.values)
    if (auto* view = std::get_if<TensorView>(&value)) {
      call.options.emplace_back(large.options[call.options.size()], *view, rows, device);
      value = call.options.back().tensor().view();
    }
  const auto results = small.outputs();
  for (size_t i = 0; i < large.outputs.size(); ++i)
    call.outputs.emplace_back(large.outputs[i], results[i], rows, device);
  for (const Rows& t : call.inputs) call.input_views.push_back(t.tensor());
  for (const Rows& t : call.outputs) call.output_views.push_back(t.tensor());
}

}  // namespace

std::string LargeCall::name() const {
  return join(op_->description().name, "_", entry_.at("name").get<std::string>());
}

Case LargeCall::with_rows(int64_t rows) const {
  Json entry = entry_;
  entry["operators"] = {op_->description().name};
  entry["sweep"] = {{"rows", {rows}}};
  return cases_of({{"cases", {entry}}}).at(0);
}

int64_t LargeCall::rows_for(int64_t elements) const {
  const auto one = all_of(shapes_of(with_rows(1))), two = all_of(shapes_of(with_rows(2)));
  int64_t largest = 1;  // elements of a row
  for (size_t i = 0; i < one.size(); ++i)
    largest = std::max(largest, num_elements(two[i].shape) - num_elements(one[i].shape));
  return elements / largest + 1;
}

int64_t LargeCall::bytes(int64_t elements) const {
  int64_t sum = 0;
  for (const auto& t : all_of(shapes_of(with_rows(rows_for(elements)))))
    sum += num_elements(t.shape) * int64_t(dtype_bytes(t.dtype));
  return sum;
}

std::vector<std::string> LargeCall::variants(Device device, int64_t elements) const {
  std::vector<std::string> names;
  for (const auto& row : explain_case(with_rows(rows_for(elements)), device_info(device)).variants)
    if (row.accepted) names.emplace_back(row.variant.name);
  return names;
}

std::string LargeCall::run(Device device, int64_t elements, std::string_view variant) const {
  const Case large = with_rows(rows_for(elements));
  const Shapes shapes = shapes_of(large);
  const auto rows = sampled_rows(rows_for(elements), all_of(shapes));
  const Case small = with_rows(int64_t(rows.size()));
  const CaseRun sample(small, Device::cpu());
  CaseRun exact(small, Device::cpu(), true);
  exact.poison_outputs();
  op_->run(exact.outputs(), exact.arguments("reference"));
  const auto expected = exact.results();

  OnDevice call;
  place(call, shapes, sample, rows, device);
  for (const auto* list : {&call.inputs, &call.options})
    for (const Rows& t : *list) t.upload();
  for (const Rows& t : call.outputs) t.poison();
  op_->run(call.output_views, call.arguments(variant));
  synchronize(device);
  for (const Rows& t : call.outputs) t.download();
  const auto got = sample.results();
  for (size_t i = 0; i < got.size(); ++i) {
    const DType dtype = shapes.outputs[i].dtype;
    const Tolerance bound =
        with_code_steps(tolerance(dtype, small.dtype, small.reduction, small.rounds_inside), dtype,
                        small.code_steps);
    const std::string difference = compare(got[i], expected[i], bound);
    if (!difference.empty()) return join("output ", i, ": ", difference);
  }
  return {};
}

std::vector<LargeCall> large_calls() {
  std::vector<LargeCall> all;
  for (const Json& entry : entries_of_all_files("large"))
    for (const Json& name : entry.at("operators"))
      all.emplace_back(entry, find_operator(name.get<std::string>()));
  return all;
}

}  // namespace tensorcraft::test
