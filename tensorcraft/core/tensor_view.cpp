// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_view.hpp"

#include "tensorcraft/core/error.hpp"

#include <bit>
#include <ostream>
#include <utility>

namespace tensorcraft {
namespace {

const std::byte* advance(const TensorView& t, int64_t elements) {
  return t.data_as<const std::byte>() + elements * int64_t(dtype_bytes(t.dtype()));
}

// Beyond every address space, and far too small for sums of offsets to overflow.
constexpr uint64_t kMaxBytes = uint64_t(1) << 60;

// Do the bytes from the first to the last element, and those of all elements, stay below kMaxBytes?
bool is_countable(const TensorView& t) {
  const uint64_t most = kMaxBytes >> std::countr_zero(dtype_bytes(t.dtype()));
  uint64_t reach = 0;
  bool overflow = uint64_t(t.size()) > most;
  for (int i = 0; i < t.rank(); ++i) {
    if (t.shape(i) < 2) continue;
    const uint64_t step = t.stride(i) < 0 ? -uint64_t(t.stride(i)) : uint64_t(t.stride(i));
    uint64_t along = 0;
    overflow |= __builtin_mul_overflow(step, uint64_t(t.shape(i) - 1), &along) ||
                __builtin_add_overflow(reach, along, &reach);
  }
  return !overflow && reach < most;
}

}  // namespace

TensorView::TensorView(void* data, DType dtype, const Dims& shape, const Dims& strides,
                       Device device, Access access)
    : data_(data),
      size_(num_elements(shape)),
      shape_(shape),
      strides_(strides),
      device_(device),
      dtype_(dtype),
      access_(access) {
  if (shape.rank() != strides.rank())
    fail(ErrorKind::value, "strides ", strides, " and shape ", shape, " differ in rank");
  if (is_countable(*this)) return;
  if (size_ > 0)
    fail(ErrorKind::value, "shape ", shape, " with strides ", strides, " of ", dtype,
         " spans 2^60 bytes or more; less is accepted");
  // Without elements the strides mean nothing, but plans multiply them.
  for (int i = 0; i < strides_.rank(); ++i) strides_[i] = 0;
}

TensorView TensorView::from_dlpack(const dlpack::DLTensor& t, Access access) {
  const auto dtype = tensorcraft::from_dlpack(t.dtype);
  if (!dtype)
    fail(ErrorKind::type, "dtype ", t.dtype, " is not supported; convert it first, for example to ",
         t.dtype.code == dlpack::kDLUInt ? DType::int64 : DType::float32);
  if (t.ndim < 0) fail(ErrorKind::value, "a DLPack tensor has a negative rank");
  if (t.ndim > 0 && !t.shape)
    fail(ErrorKind::value, "a DLPack tensor of rank ", t.ndim, " must have a shape, got null");
  const Dims shape(std::span<const int64_t>(t.shape, size_t(t.ndim)));
  const Dims strides = t.strides ? Dims(std::span<const int64_t>(t.strides, size_t(t.ndim)))
                                 : contiguous_strides(shape);
  // Empty tensors and prototypes may have no memory, and then the offset means nothing.
  void* data = t.data ? static_cast<std::byte*>(t.data) + t.byte_offset : nullptr;
  return {data, *dtype, shape, strides, tensorcraft::from_dlpack(t.device), access};
}

bool TensorView::is_contiguous() const {
  if (size_ == 0) return true;
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

TensorView TensorView::reshape(const Dims& wanted, std::source_location where) const {
  Dims shape = wanted;
  int inferred = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && inferred < 0)
      inferred = i;
    else if (shape[i] == -1)
      fail({ErrorKind::value, where}, "reshape: shape ", wanted, " has more than one -1");
    else if (shape[i] < 0)
      fail({ErrorKind::value, where}, "reshape: shape ", wanted, ": ", shape[i],
           " is no size; -1 is inferred, others are at least 0");
    else if (__builtin_mul_overflow(known, shape[i], &known))
      fail({ErrorKind::value, where}, "reshape: shape ", wanted,
           " has more elements than 64 bits count");
  }
  if (inferred >= 0 && known == 0)
    fail({ErrorKind::value, where}, "reshape: shape ", wanted,
         ": the size for -1 is not determined beside a 0; write it");
  if (inferred >= 0) shape[inferred] = size_ / known;
  if (num_elements(shape) != size_)
    fail({ErrorKind::value, where}, "reshape: shape ", wanted, " does not hold the ", size_,
         " elements of shape ", shape_);
  if (!is_contiguous())
    fail({ErrorKind::value, where},
         "reshape: the tensor is not contiguous; take .contiguous() first");
  return at(data_, shape, contiguous_strides(shape));
}

TensorView TensorView::permute(std::span<const int> axes, std::source_location where) const {
  if (int(axes.size()) != rank())
    fail({ErrorKind::value, where}, "permute: ", axes.size(), " axes for a tensor of rank ",
         rank());
  Dims shape = shape_, strides = strides_;
  unsigned seen = 0;
  for (int i = 0; i < rank(); ++i) {
    const int axis = normalize_axis(axes[size_t(i)], rank(), "permute", where);
    if (seen & (1u << axis))
      fail({ErrorKind::value, where}, "permute: axis ", axis,
           " is named twice; each must be named once");
    seen |= 1u << axis;
    shape[i] = shape_[axis];
    strides[i] = strides_[axis];
  }
  return at(data_, shape, strides);
}

TensorView TensorView::transpose(int a, int b, std::source_location where) const {
  const int i = normalize_axis(a, rank(), "transpose", where),
            j = normalize_axis(b, rank(), "transpose", where);
  Dims shape = shape_, strides = strides_;
  std::swap(shape[i], shape[j]);
  std::swap(strides[i], strides[j]);
  return at(data_, shape, strides);
}

TensorView TensorView::select(int axis, int64_t index, std::source_location where) const {
  const int a = normalize_axis(axis, rank(), "select", where);
  const int64_t n = shape_[a];
  if (index < -n || index >= n)
    fail({ErrorKind::index, where}, "index ", index, " is out of bounds for axis ", a,
         " with size ", n);
  Dims shape, strides;
  for (int i = 0; i < rank(); ++i) {
    if (i == a) continue;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return at(advance(*this, (index < 0 ? index + n : index) * strides_[a]), shape, strides);
}

TensorView TensorView::slice(int axis, int64_t start, int64_t stop, int64_t step,
                             std::source_location where) const {
  const int a = normalize_axis(axis, rank(), "slice", where);
  if (step <= 0) fail({ErrorKind::value, where}, "slice: step must be positive, got ", step);
  const int64_t n = shape_[a];
  const auto clamp = [n](int64_t i) { return i < 0 ? (i + n < 0 ? 0 : i + n) : (i > n ? n : i); };
  const int64_t first = clamp(start), last = clamp(stop);
  Dims shape = shape_, strides = strides_;
  shape[a] = last > first ? (last - first - 1) / step + 1 : 0;
  if (shape[a] > 1) strides[a] = strides_[a] * step;  // else any stride will do
  const void* data = shape[a] ? advance(*this, first * strides_[a]) : data_;
  return at(data, shape, strides);
}

TensorView TensorView::expand_dims(int axis, std::source_location where) const {
  const int a = normalize_axis(axis, rank() + 1, "expand_dims", where);
  Dims shape, strides;
  for (int i = 0; i <= rank(); ++i) {
    if (i == a) {
      shape.push_back(1);
      strides.push_back(1);
    }
    if (i == rank()) break;
    shape.push_back(shape_[i]);
    strides.push_back(strides_[i]);
  }
  return at(data_, shape, strides);
}

TensorView TensorView::squeeze(int axis, std::source_location where) const {
  const int a = normalize_axis(axis, rank(), "squeeze", where);
  if (shape_[a] != 1)
    fail({ErrorKind::value, where}, "squeeze: axis ", a, " has size ", shape_[a], ", not 1");
  return select(a, 0, where);
}

TensorView TensorView::broadcast_to(const Dims& target, std::source_location where) const {
  if (at_line(where, [&] { return broadcast_shapes(shape_, target); }) != target)
    fail({ErrorKind::value, where}, "shape ", shape_, " does not broadcast to ", target);
  Dims strides = target;
  const int offset = target.rank() - rank();
  for (int i = 0; i < target.rank(); ++i)
    strides[i] = i < offset || shape_[i - offset] != target[i] ? 0 : strides_[i - offset];
  return at(data_, target, strides);
}

TensorView TensorView::flip(int axis, std::source_location where) const {
  const int a = normalize_axis(axis, rank(), "flip", where);
  if (size_ == 0 || shape_[a] == 1) return *this;
  Dims strides = strides_;
  auto* const last =
      static_cast<std::byte*>(data_) + (shape_[a] - 1) * strides[a] * int64_t(dtype_bytes(dtype_));
  strides[a] = -strides[a];
  return at(last, shape_, strides);
}

TensorView TensorView::bits_as(DType dtype, std::source_location where) const {
  if (dtype_bytes(dtype) != dtype_bytes(dtype_))
    fail({ErrorKind::value, where}, "elements of ", dtype_, " and ", dtype,
         " differ in their bytes");
  TensorView view = *this;
  view.dtype_ = dtype;
  return view;
}

TensorView TensorView::at(const void* data, Device device) const {
  return {const_cast<void*>(data), dtype_, shape_, strides_, device, access_};
}

TensorView TensorView::at(const void* data, const Dims& shape, const Dims& strides) const {
  return {const_cast<void*>(data), dtype_, shape, strides, device_, access_};
}

void TensorView::refuse_to_write() {
  fail(ErrorKind::buffer, "the memory of a read-only tensor is not written; copy the tensor");
}

TensorView TensorView::as_read_only() const {
  return {data_, dtype_, shape_, strides_, device_, Access::read_only};
}

std::ostream& operator<<(std::ostream& out, const TensorView& t) {
  const auto list = [&](const Dims& d) {
    out << '<';
    for (int i = 0; i < d.rank(); ++i) out << (i ? ", " : "") << d[i];
    out << '>';
  };
  out << "Tensor";
  list(t.shape());
  out << "[strides=";
  list(t.strides());
  return out << ", dtype=" << t.dtype() << ", device=" << t.device() << ']';
}

}  // namespace tensorcraft
