// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/tensor.hpp"

#include "tensorcraft/core/element_type.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <string>
#include <utility>

namespace tensorcraft {
namespace {

// The stream this thread works on, made to wait for what the tensor's own stream holds so far.
StreamRef current_after(const Tensor& tensor, int device) {
  const StreamRef now = current_stream(device);
  if (!tensor.device().is_cuda() || tensor.stream() == now) return now;
  Event done(tensor.stream().device());
  done.record(tensor.stream());
  done.wait(now);
  return now;
}

// From one GPU to another, by way of the host: the driver copies memory of stream-ordered
// allocators between devices only if one may reach into the other's. Returns when all is copied.
void copy_across(const TensorView& to, const TensorView& from, StreamRef stream) {
  constexpr size_t kPiece = 16 << 20;
  const size_t bytes = to.nbytes();
  const StreamRef source = current_stream(from.device().index),
                  target = current_stream(to.device().index);
  const PinnedBuffer host(std::min(bytes, kPiece), source);
  stream.synchronize();  // it holds, or waits for, what was to happen before the copy
  for (size_t at = 0; at < bytes; at += kPiece) {
    const size_t size = std::min(kPiece, bytes - at);
    cuda::copy_async(host.data(), static_cast<const std::byte*>(from.data()) + at, size, source);
    source.synchronize();
    cuda::copy_async(to.data_as<std::byte>() + at, host.data(), size, target);
    target.synchronize();
  }
}

// Values of the host, of which large tensors show the ends of each axis.
class Printer {
 public:
  Printer(std::ostream& out, const TensorView& t)
      : out_(out), t_(t), shortened_(t.size() > kMost || t.size() == 0) {}
  void print(int axis = 0, int64_t at = 0) const {
    if (axis == t_.rank()) return print_element(at);
    out_ << '[';
    const int64_t n = t_.shape(axis);
    const bool skips = shortened_ && n > 2 * kEnds;
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) separate(axis);
      if (skips && i == kEnds) {
        out_ << "...";
        separate(axis);
        i = n - kEnds;
      }
      print(axis + 1, at + i * t_.stride(axis));
    }
    out_ << ']';
  }

 private:
  static constexpr int64_t kMost = 64, kEnds = 3;

  // Numbers stand in a line, rows below each other.
  void separate(int axis) const {
    if (axis + 1 == t_.rank())
      out_ << ", ";
    else
      out_ << ",\n" << std::string(size_t(axis + 1), ' ');
  }
  void print_element(int64_t at) const {
    with_element_type(t_.dtype(), [&]<class T>(T*) {
      if constexpr (std::is_same_v<T, bool>)  // any byte but 0 is true
        out_ << (t_.data_as<const uint8_t>()[at] ? "true" : "false");
      else if constexpr (std::is_integral_v<T>)
        out_ << int64_t(t_.data_as<const T>()[at]);
      else
        out_ << float(t_.data_as<const T>()[at]);
    });
  }

  std::ostream& out_;
  const TensorView& t_;
  bool shortened_;
};

}  // namespace

Tensor::Tensor(DType dtype, const Dims& shape, Device device)
    : Tensor(dtype, shape, device, current_stream(device.index)) {}

Tensor::Tensor(DType dtype, const Dims& shape, Device device, StreamRef stream)
    : Tensor(dtype, shape, device, stream, allocator(device)) {}

Tensor::Tensor(DType dtype, const Dims& shape, Device device, StreamRef stream, Allocator& source)
    : source_(&source),
      stream_(stream),
      size_(num_elements(shape)),
      shape_(shape),
      device_(device),
      dtype_(dtype) {
  block_ = source.allocate(bytes_of(dtype, size_), stream);
}

Tensor::~Tensor() {
  if (block_.data) source_->deallocate(block_, stream_);
}

Tensor::Tensor(Tensor&& other) noexcept
    : block_(std::exchange(other.block_, {})),
      source_(other.source_),
      stream_(other.stream_),
      size_(std::exchange(other.size_, 0)),
      shape_(std::exchange(other.shape_, Dims{0})),
      device_(other.device_),
      dtype_(other.dtype_) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  Tensor taken(std::move(other));
  std::swap(block_, taken.block_);
  std::swap(source_, taken.source_);
  std::swap(stream_, taken.stream_);
  std::swap(size_, taken.size_);
  std::swap(shape_, taken.shape_);
  std::swap(device_, taken.device_);
  std::swap(dtype_, taken.dtype_);
  return *this;
}

Tensor Tensor::copied(const void* values, DType dtype, size_t count, const Dims& shape,
                      Device device, std::source_location where) {
  return at_line(where, [&] {
    if (int64_t(count) != num_elements(shape))
      fail(ErrorKind::value, "from: ", count, " values were given for shape ", shape,
           ", which has ", num_elements(shape));
    Tensor tensor(dtype, shape, device);
    tensor.copy_from_host(values, tensor.nbytes());
    return tensor;
  });
}

void Tensor::record(StreamRef stream) const {
  if (block_.data) source_->record(block_.data, stream);
}

void Tensor::require_dtype(DType dtype, std::source_location where) const {
  if (dtype != dtype_)
    fail({ErrorKind::type, where}, "to_vector: the tensor holds ", dtype_, ", not ", dtype,
         "; ask for that type, or convert it with astype()");
}

void Tensor::copy_from_host(const void* source, size_t bytes, std::source_location where) {
  if (bytes != nbytes())
    fail({ErrorKind::value, where}, "copy_from_host: ", bytes, " bytes were given for a tensor of ",
         nbytes());
  const StreamRef on = current_after(*this, device_.index);
  try {
    copy_bytes(view(), {const_cast<void*>(source), dtype_, shape_}, on);
  } catch (...) {  // the copy may be enqueued all the same, and write after the tensor is gone
    if (device_.is_cuda() && on != stream_) record(on);
    throw;
  }
}

void Tensor::copy_to_host(void* target, size_t bytes, std::source_location where) const {
  if (bytes != nbytes())
    fail({ErrorKind::value, where}, "copy_to_host: room for ", bytes,
         " bytes was given, the tensor has ", nbytes());
  copy_bytes({target, dtype_, shape_}, view(), current_after(*this, device_.index));
}

Tensor Tensor::to(Device device) const {
  Tensor result(dtype_, shape_, device);
  const Device on = device.is_cuda() ? device : device_;
  copy_bytes(result, view(), current_after(*this, on.index));
  return result;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  const Tensor on_host = tensor.device().is_cuda() ? tensor.to(Device::cpu()) : Tensor();
  const TensorView values = tensor.device().is_cuda() ? on_host.view() : tensor.view();
  Printer(out, values).print();
  return out << '\n' << tensor.view();
}

void copy_bytes(const TensorView& to, const TensorView& from, StreamRef stream) {
  if (to.dtype() != from.dtype() || to.size() != from.size())
    fail(ErrorKind::value, "copy: ", from, " does not fit ", to);
  if (!to.is_contiguous() || !from.is_contiguous())
    fail(ErrorKind::value, "copy: both tensors must be contiguous, got ", from, " and ", to);
  if (to.size() == 0) return;
  if (!to.device().is_cuda() && !from.device().is_cuda()) {
    std::memmove(to.writable_data(), from.data(), to.nbytes());
    return;
  }
  if (to.device().is_cuda() && from.device().is_cuda() && to.device() != from.device()) {
    copy_across(to, from, stream);
    return;
  }
  cuda::copy_async(to.writable_data(), from.data(), to.nbytes(), stream);
  if (!to.device().is_cuda() || !from.device().is_cuda()) stream.synchronize();
}

}  // namespace tensorcraft
