// SPDX-License-Identifier: Apache-2.0
#include "bench/operands.hpp"

#include "tensorcraft/op/host/elements.hpp"

#include <algorithm>
#include <map>
#include <random>

namespace tensorcraft::bench {
namespace {

constexpr int64_t kPattern = 1 << 20;
constexpr size_t kMaxCopies = 256;

bool is_float(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16 ||
         dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

// A million random elements in host memory, made once for each dtype and bound.
const Tensor& pattern(DType dtype, int64_t below) {
  static std::map<std::pair<DType, int64_t>, Tensor> known;
  Tensor& made = known[{dtype, below}];
  if (made.size() > 0) return made;
  made = Tensor(dtype, {kPattern}, Device::cpu());
  const host::Elements elements(made.view());
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < kPattern; ++i) {
    if (is_float(dtype))
      elements.set(i, normal(random));
    else
      elements.set_integer(i, int64_t(random() % uint64_t(below)));
  }
  return made;
}

TensorView part(const TensorView& tensor, int64_t begin, int64_t size) {
  return {tensor.data_as<std::byte>() + size_t(begin) * dtype_bytes(tensor.dtype()),
          tensor.dtype(),
          {size},
          tensor.device()};
}

// The elements from the first to the last of a view, those between its rows included.
int64_t span_of(const TensorView& view) {
  if (view.size() == 0) return 0;
  int64_t last = 0;
  for (int i = 0; i < view.rank(); ++i) last += (view.shape(i) - 1) * view.stride(i);
  return last + 1;
}

// The smallest size of the other arrays, so that integers are indices into any of them.
int64_t smallest_size(const diagnose::Request& request, const TensorView& except) {
  int64_t smallest = INT32_MAX;
  for (const TensorView& input : request.inputs())
    for (int i = 0; &input != &except && i < input.rank(); ++i)
      smallest = std::min(smallest, std::max<int64_t>(input.shape(i), 1));
  return smallest;
}

int64_t bound(const Case& c, const diagnose::Request& request, std::string_view name,
              const TensorView& tensor) {
  if (tensor.dtype() == DType::bool_) return 2;
  if (dtype_bytes(tensor.dtype()) == 1) return 256;
  const auto given = c.below.find(std::string(name));
  return given != c.below.end() ? given->second : smallest_size(request, tensor);
}

int64_t step_of(const Case& c, std::string_view name) {
  const auto given = c.step.find(std::string(name));
  return given != c.step.end() ? given->second : 0;
}

void fill_ascending(const TensorView& tensor, int64_t step, StreamRef stream) {
  const Tensor host(tensor.dtype(), tensor.shape(), Device::cpu());
  const host::Elements elements(host.view());
  for (int64_t i = 0; i < tensor.size(); ++i) elements.set_integer(i, i * step);
  copy_bytes(tensor, host.view(), stream);
}

}  // namespace

int copies_for(size_t bytes, size_t cache_bytes) {
  const size_t wanted = 2 * cache_bytes / std::max<size_t>(bytes, 1) + 1;
  return int(std::clamp<size_t>(wanted, 2, kMaxCopies));
}

void fill_random(const TensorView& tensor, int64_t below, uint64_t turn, StreamRef stream) {
  const TensorView source = pattern(tensor.dtype(), is_float(tensor.dtype()) ? 0 : below).view();
  const int64_t size = tensor.size(), start = int64_t(turn * 7919 % uint64_t(kPattern));
  int64_t done = std::min(size, kPattern - start);
  if (size == 0) return;
  copy_bytes(part(tensor, 0, done), part(source, start, done), stream);
  if (const int64_t rest = std::min(size - done, start); rest > 0) {
    copy_bytes(part(tensor, done, rest), part(source, 0, rest), stream);
    done += rest;
  }
  for (int64_t next = 0; done < size; done += next) {  // what is there, again after it
    next = std::min(size - done, done);
    copy_bytes(part(tensor, done, next), part(tensor, 0, next), stream);
  }
}

size_t Operands::bytes_of(const diagnose::Request& request) {
  size_t bytes = 0;
  for (const TensorView& input : request.inputs()) bytes += input.nbytes();
  for (const TensorView& output : request.outputs()) bytes += output.nbytes();
  for (const op::Value& option : request.options())
    if (const auto* tensor = std::get_if<TensorView>(&option)) bytes += tensor->nbytes();
  return bytes;
}

Operands::Operands(const Case& c, const diagnose::Request& request, StreamRef stream, int copies)
    : request_(request), stream_(stream) {
  const op::Description& d = request.op().description();
  for (int copy = 0; copy < copies; ++copy) {
    Set& set = sets_.emplace_back();
    for (size_t i = 0; i < request.inputs().size(); ++i) {
      const TensorView& input = request.inputs()[i];
      const std::string_view name = d.inputs[i].name;
      set.inputs.push_back(add(input, bound(c, request, name, input), step_of(c, name)));
    }
    for (size_t i = 0; i < request.options().size(); ++i) {
      set.options.push_back(request.options()[i]);
      if (const auto* tensor = std::get_if<TensorView>(&request.options()[i]))
        set.options.back() = add(*tensor, bound(c, request, d.options[i].name, *tensor),
                                 step_of(c, d.options[i].name));
    }
    for (const TensorView& output : request.outputs()) set.outputs.push_back(add(output, 1));
  }
  if (stream.handle()) stream.synchronize();
}

TensorView Operands::add(const TensorView& like, int64_t below, int64_t step) {
  const Device device = like.device();
  const Dims elements{span_of(like)};
  memory_.push_back(device.is_cuda() ? Tensor(like.dtype(), elements, device, stream_)
                                     : Tensor(like.dtype(), elements, device));
  const TensorView memory = memory_.back().view();
  if (step > 0)
    fill_ascending(memory, step, stream_);
  else
    fill_random(memory, below, memory_.size(), stream_);
  return {memory.writable_data(), like.dtype(), like.shape(), like.strides(), device};
}

void Operands::run(int copy, std::string_view variant) const {
  const Set& set = sets_[size_t(copy)];
  op::Arguments arguments{set.inputs, set.options, variant};
  if (stream_.handle()) arguments.stream = stream_;
  request_.op().run(set.outputs, arguments);
}

}  // namespace tensorcraft::bench
