// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/tensor.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
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
  const std::unique_ptr<void, void (*)(void*)> host{cuda::allocate_pinned(std::min(bytes, kPiece)),
                                                    cuda::deallocate_pinned};
  const StreamRef source = current_stream(from.device().index),
                  target = current_stream(to.device().index);
  stream.synchronize();  // it holds, or waits for, what was to happen before the copy
  for (size_t at = 0; at < bytes; at += kPiece) {
    const size_t size = std::min(kPiece, bytes - at);
    cuda::copy_async(host.get(), static_cast<const std::byte*>(from.data()) + at, size, source);
    source.synchronize();
    cuda::copy_async(static_cast<std::byte*>(to.data()) + at, host.get(), size, target);
    target.synchronize();
  }
}

}  // namespace

Tensor::Tensor(DType dtype, const Dims& shape, Device device)
    : Tensor(dtype, shape, device, current_stream(device.index)) {}

Tensor::Tensor(DType dtype, const Dims& shape, Device device, StreamRef stream)
    : stream_(stream), size_(num_elements(shape)), shape_(shape), device_(device), dtype_(dtype) {
  block_ = allocator(device).allocate(bytes_of(dtype, size_), stream);
}

Tensor::~Tensor() {
  if (block_.data) allocator(device_).deallocate(block_, stream_);
}

Tensor::Tensor(Tensor&& other) noexcept
    : block_(std::exchange(other.block_, {})),
      stream_(other.stream_),
      size_(std::exchange(other.size_, 0)),
      shape_(std::exchange(other.shape_, Dims{0})),
      device_(other.device_),
      dtype_(other.dtype_) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  Tensor taken(std::move(other));
  std::swap(block_, taken.block_);
  std::swap(stream_, taken.stream_);
  std::swap(size_, taken.size_);
  std::swap(shape_, taken.shape_);
  std::swap(device_, taken.device_);
  std::swap(dtype_, taken.dtype_);
  return *this;
}

void Tensor::copy_from_host(const void* source, size_t bytes) {
  if (bytes != nbytes())
    fail(ErrorKind::value, "copy_from_host: ", bytes, " bytes were given for a tensor of ",
         nbytes());
  copy_bytes(view(), {const_cast<void*>(source), dtype_, shape_},
             current_after(*this, device_.index));
}

void Tensor::copy_to_host(void* target, size_t bytes) const {
  if (bytes != nbytes())
    fail(ErrorKind::value, "copy_to_host: room for ", bytes, " bytes was given, the tensor has ",
         nbytes());
  copy_bytes({target, dtype_, shape_}, view(), current_after(*this, device_.index));
}

Tensor Tensor::to(Device device) const {
  Tensor result(dtype_, shape_, device);
  const Device on = device.is_cuda() ? device : device_;
  copy_bytes(result, view(), current_after(*this, on.index));
  return result;
}

void copy_bytes(const TensorView& to, const TensorView& from, StreamRef stream) {
  if (to.dtype() != from.dtype() || to.size() != from.size())
    fail(ErrorKind::value, "copy: ", from, " does not fit ", to);
  if (!to.is_contiguous() || !from.is_contiguous())
    fail(ErrorKind::value, "copy: both tensors must be contiguous, got ", from, " and ", to);
  if (to.size() == 0) return;
  if (!to.device().is_cuda() && !from.device().is_cuda()) {
    std::memmove(to.data(), from.data(), to.nbytes());
    return;
  }
  if (to.device().is_cuda() && from.device().is_cuda() && to.device() != from.device()) {
    copy_across(to, from, stream);
    return;
  }
  cuda::copy_async(to.data(), from.data(), to.nbytes(), stream);
  if (!to.device().is_cuda() || !from.device().is_cuda()) stream.synchronize();
}

}  // namespace tensorcraft
