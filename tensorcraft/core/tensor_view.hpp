// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dims.hpp"
#include "tensorcraft/core/dlpack.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/source_location.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <type_traits>

namespace tensorcraft {

// May the memory be written through a view?
enum class Access : uint8_t { read_write, read_only };

// A borrowed tensor: address, dtype, shape and strides in elements, device. It owns nothing: the
// memory must outlive every use, also on a stream. It has no default, so `{}` never means a tensor.
class TensorView {
 public:
  // Row-major.
  TensorView(void* data, DType dtype, const Dims& shape, Device device = Device::cpu())
      : TensorView(data, dtype, shape, contiguous_strides(shape), device) {}
  // Kind value: strides and shape differ in rank, a size is negative, or 2^60 bytes are spanned.
  TensorView(void* data, DType dtype, const Dims& shape, const Dims& strides, Device device,
             Access access = Access::read_write);
  // Borrows what DLPack describes (strides may be null: row-major). Kind type for a dtype the
  // library lacks, kind value for a device or rank it lacks; null data stays null.
  static TensorView from_dlpack(const dlpack::DLTensor& tensor, Access access = Access::read_write);

  // These return what the view was made of; size() counts elements, and an index is not checked.
  const void* data() const { return data_; }
  // Returns the same address, to write there. Kind buffer if the view is read-only.
  void* writable_data() const {
    if (read_only()) refuse_to_write();
    return data_;
  }
  // The address of elements of T. Kind buffer if T is not const and the view is read-only.
  template <class T>
  T* data_as() const {
    if constexpr (std::is_const_v<T>)
      return static_cast<T*>(data_);
    else
      return static_cast<T*>(writable_data());
  }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  int rank() const { return shape_.rank(); }
  int64_t shape(int i) const { return shape_[i]; }
  int64_t stride(int i) const { return strides_[i]; }
  int64_t size() const { return size_; }
  size_t nbytes() const { return size_t(size_) * dtype_bytes(dtype_); }
  bool read_only() const { return access_ == Access::read_only; }
  // Row-major without gaps; dimensions of size 1 may have any stride, an empty tensor any strides.
  bool is_contiguous() const;
  // Address is a multiple of `bytes`.
  bool is_aligned(size_t bytes) const { return reinterpret_cast<uintptr_t>(data_) % bytes == 0; }

  // Other views of the same memory; kind value or index, at the caller's line, if the request makes
  // no sense. An axis counts from -rank; start and stop count from the end if they are negative and
  // stop at the ends, as Python's do.
  TensorView reshape(const Dims& shape,  // contiguous only; one -1 is inferred
                     std::source_location where = std::source_location::current()) const;
  TensorView permute(std::span<const int> axes,
                     std::source_location where = std::source_location::current()) const;
  TensorView permute(std::initializer_list<int> axes,
                     std::source_location where = std::source_location::current()) const {
    return permute(std::span(axes.begin(), axes.size()), where);
  }
  TensorView transpose(int a, int b,
                       std::source_location where = std::source_location::current()) const;
  TensorView select(int axis, int64_t index,  // without the axis
                    std::source_location where = std::source_location::current()) const;
  TensorView slice(int axis, int64_t start, int64_t stop, int64_t step = 1,
                   std::source_location where = std::source_location::current()) const;
  TensorView expand_dims(int axis,
                         std::source_location where = std::source_location::current()) const;
  TensorView squeeze(int axis, std::source_location where = std::source_location::current()) const;
  TensorView broadcast_to(const Dims& shape,
                          std::source_location where = std::source_location::current()) const;
  TensorView as_read_only() const;
  // Returns a view of another address, to be read or written as this memory may be.
  TensorView at(const void* data, Device device) const;
  TensorView at(const void* data, const Dims& shape, const Dims& strides) const;
  // The axis from its end to its beginning.
  TensorView flip(int axis, std::source_location where = std::source_location::current()) const;
  // Views the same bits as elements of another dtype of as many bytes.
  TensorView bits_as(DType dtype,
                     std::source_location where = std::source_location::current()) const;

 private:
  [[noreturn]] static void refuse_to_write();

  void* data_;
  int64_t size_;
  Dims shape_, strides_;
  Device device_;
  DType dtype_;
  Access access_;
};

// The address of an operand that may be left out; null if it is. Kind buffer as data_as.
template <class T = const void>
T* data_of(const std::optional<TensorView>& t) {
  return t ? t->data_as<T>() : nullptr;
}

// "Tensor<32, 128>[strides=<128, 1>, dtype=float32, device=cuda:0]"
std::ostream& operator<<(std::ostream& out, const TensorView& t);
// The bytes a view can touch, from its address on; nothing is before `begin` or at `end`.
struct ByteRange {
  int64_t begin, end;
};
ByteRange byte_range(const TensorView& t);
// Do two views share memory? Decided exactly for views of one buffer that are slices, transposes or
// reversals of it; `maybe` only if strides interleave in so many ways that it takes too long to
// say.
enum class Overlap : uint8_t { none, certain, maybe };
// Do the two touch a common byte? Views on different devices and null views do not.
Overlap overlap_of(const TensorView& a, const TensorView& b);
// Not known to be apart.
inline bool may_overlap(const TensorView& a, const TensorView& b) {
  return overlap_of(a, b) != Overlap::none;
}
// Can two indices name the same element? Never for a slice, a transpose or a reversal of a dense
// tensor; true as well if strides interleave in so many ways that it takes too long to say.
bool overlaps_itself(const TensorView& t);

}  // namespace tensorcraft
