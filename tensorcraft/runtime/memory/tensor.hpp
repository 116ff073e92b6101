// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"

namespace tensorcraft {

// An owned, row-major tensor on one device. Moves only; a moved-from tensor is empty: size 0,
// shape [0], no memory. Memory comes from allocator(device) on one stream and goes back on the
// same, whichever thread frees it: the stream must outlive the tensor, and work of other streams on
// it must be done, or ordered before that stream by an Event.
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised memory, on the current stream if none is given. Kind value for a bad shape or
  // device, out_of_memory if there is no room.
  Tensor(DType dtype, const Dims& shape, Device device = Device::cpu());
  Tensor(DType dtype, const Dims& shape, Device device, StreamRef stream);
  ~Tensor();
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  // What it is; size() counts elements. A view borrows, and is dangling once the tensor is gone.
  void* data() const { return block_.data; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(block_.data);
  }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  StreamRef stream() const { return stream_; }  // of its memory
  const Dims& shape() const { return shape_; }
  int64_t shape(int i) const { return shape_[i]; }
  int64_t size() const { return size_; }
  size_t nbytes() const { return size_t(size_) * dtype_bytes(dtype_); }
  TensorView view() const { return {data(), dtype_, shape_, device_}; }
  operator TensorView() const { return view(); }  // NOLINT

  // Copies the bytes of the whole tensor and waits; kind value if `bytes` is not nbytes(). Like
  // to(), on the current stream, after what the tensor's own stream holds so far.
  void copy_from_host(const void* source, size_t bytes);
  void copy_to_host(void* target, size_t bytes) const;
  // A copy on another device (or the same); waits if host memory takes part.
  Tensor to(Device device) const;

 private:
  Block block_;
  StreamRef stream_;
  int64_t size_ = 0;
  Dims shape_{0};
  Device device_;
  DType dtype_ = DType::float32;
};

// Copies between two contiguous views of equal dtype and size on any devices. Waits if host memory
// takes part and between two GPUs, which streams that are captured refuse; else enqueues on
// `stream`.
void copy_bytes(const TensorView& to, const TensorView& from, StreamRef stream);

}  // namespace tensorcraft
