// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dlpack_traits.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace tensorcraft {

// An owned, row-major tensor on one device. Moves only; a moved-from tensor is empty: size 0,
// shape [0], no memory. Memory comes from an allocator, allocator(device) if none is given, on one
// stream and goes back on the same, whichever thread frees it: allocator and stream must outlive
// the tensor, and work of other streams on it must be done, ordered before that stream by an Event,
// or told by record().
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised memory, on the current stream if none is given. Kind value for a bad shape or
  // device, out_of_memory if there is no room.
  Tensor(DType dtype, const Dims& shape, Device device = Device::cpu());
  Tensor(DType dtype, const Dims& shape, Device device, StreamRef stream);
  // The allocator's memory must be the device's.
  Tensor(DType dtype, const Dims& shape, Device device, StreamRef stream, Allocator& source);
  // A copy of values of the host (a span, vector, array or list), row-major, with the dtype that
  // holds their type: float, f16, bf16, int32_t, bool, ... Kind value unless the shape has as many
  // elements.
  template <std::ranges::contiguous_range Values>
  static Tensor from(const Values& values, const Dims& shape, Device device = Device::cpu(),
                     std::source_location where = std::source_location::current()) {
    using T = std::ranges::range_value_t<Values>;
    return copied(std::ranges::data(values), dtype_of<T>(), std::ranges::size(values), shape,
                  device, where);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Dims& shape,
                     Device device = Device::cpu(),
                     std::source_location where = std::source_location::current()) {
    return copied(values.begin(), dtype_of<T>(), values.size(), shape, device, where);
  }
  ~Tensor();
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  // These describe the tensor; size() counts elements. A view borrows, and is dangling once the
  // tensor is gone.
  void* data() const { return block_.data; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(block_.data);
  }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  StreamRef stream() const { return stream_; }  // of its memory
  // Work that is enqueued on another stream until the tensor is gone uses it; that stream must live
  // until then.
  void record(StreamRef stream) const;
  const Dims& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t shape(int i) const { return shape_[i]; }
  int64_t size() const { return size_; }
  size_t nbytes() const { return size_t(size_) * dtype_bytes(dtype_); }
  TensorView view() const { return {data(), dtype_, shape_, device_}; }
  operator TensorView() const { return view(); }  // NOLINT

  // Views of parts of it or in another order, as TensorView has them, for any operator to read or
  // write: transpose(), squeeze() and the others are view()'s.
  TensorView reshape(const Dims& shape,
                     std::source_location where = std::source_location::current()) const {
    return view().reshape(shape, where);
  }
  TensorView permute(std::initializer_list<int> axes,
                     std::source_location where = std::source_location::current()) const {
    return view().permute(axes, where);
  }
  TensorView transpose(int a, int b,
                       std::source_location where = std::source_location::current()) const {
    return view().transpose(a, b, where);
  }
  TensorView select(int axis, int64_t index,
                    std::source_location where = std::source_location::current()) const {
    return view().select(axis, index, where);
  }
  TensorView slice(int axis, int64_t start, int64_t stop, int64_t step = 1,
                   std::source_location where = std::source_location::current()) const {
    return view().slice(axis, start, stop, step, where);
  }

  // All elements, row-major, copied and waited for. Kind type unless T is what the dtype holds.
  template <class T>
  std::vector<T> to_vector(std::source_location where = std::source_location::current()) const {
    require_dtype(dtype_of<T>(), where);
    // A vector of bool has no array of them.
    const size_t count = size_t(size_);
    std::vector<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>> values(count);
    copy_to_host(values.data(), nbytes(), where);
    if constexpr (std::is_same_v<T, bool>)
      return {values.begin(), values.end()};
    else
      return values;
  }
  // Copies the bytes of the whole tensor and waits; kind value if `bytes` is not nbytes(). Like
  // to(), on the current stream, after what the tensor's own stream holds so far.
  void copy_from_host(const void* source, size_t bytes,
                      std::source_location where = std::source_location::current());
  void copy_to_host(void* target, size_t bytes,
                    std::source_location where = std::source_location::current()) const;
  // A copy on another device (or the same); waits if host memory takes part.
  Tensor to(Device device) const;

 private:
  static Tensor copied(const void* values, DType dtype, size_t count, const Dims& shape,
                       Device device, std::source_location where);
  void require_dtype(DType dtype, std::source_location where) const;

  Block block_;
  Allocator* source_ = nullptr;
  StreamRef stream_;
  int64_t size_ = 0;
  Dims shape_{0};
  Device device_;
  DType dtype_ = DType::float32;
};

// Its values, of a large one the first and last three along each axis, then dtype and the rest as a
// view of it is printed. Waits, as to_vector() does.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Copies between two contiguous views of equal dtype and size on any devices. Waits if host memory
// takes part and between two GPUs, which streams that are captured refuse; else enqueues on
// `stream`.
void copy_bytes(const TensorView& to, const TensorView& from, StreamRef stream);

}  // namespace tensorcraft
