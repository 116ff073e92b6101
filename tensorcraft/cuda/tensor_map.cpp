// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/tensor_map.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"

#include <cstring>

namespace tensorcraft::cuda {
namespace {

constexpr uint64_t kMaxDim = uint64_t(1) << 32;
constexpr uint64_t kStrideEnd = uint64_t(1) << 40;

// The driver's numbers of element types.
int element_type(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::int8:
    case DType::uint8:
    case DType::bool_:
      return 0;
    case DType::int16:
      return 1;
    case DType::int32:
      return 3;
    case DType::int64:
      return 5;
    case DType::float16:
      return 6;
    case DType::float32:
      return 7;
    case DType::bfloat16:
      return 9;
  }
  fail(ErrorKind::type, "tensor map: dtype ", dtype, " is not supported");
}

uint64_t swizzle_span(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 0 : uint64_t(16) << int(swizzle);
}

void check_dimension(const TiledTensor& t, int i) {
  const size_t d = size_t(i);
  if (t.dims[d] < 1 || t.dims[d] > kMaxDim)
    fail(ErrorKind::value, "tensor map: dimension ", i, " must be in [1, 2^32], got ", t.dims[d]);
  if (t.box[d] < 1 || t.box[d] > 256)
    fail(ErrorKind::value, "tensor map: box size ", i, " must be in [1, 256], got ", t.box[d]);
  if (t.element_strides[d] < 1 || t.element_strides[d] > 8)
    fail(ErrorKind::value, "tensor map: element stride ", i, " must be in [1, 8], got ",
         t.element_strides[d]);
  if (i == 0) return;
  const uint64_t stride = t.strides[d - 1];
  if (stride % 16 != 0 || stride >= kStrideEnd)
    fail(ErrorKind::value, "tensor map: the stride of dimension ", i,
         " must be a multiple of 16 bytes below 2^40, got ", stride,
         " bytes; use a variant without TMA or pad the rows");
}

void check_tensor(const TiledTensor& t) {
  if (t.rank < 1 || t.rank > 5)
    fail(ErrorKind::value, "tensor map: rank must be in [1, 5], got ", t.rank);
  if (!t.address || reinterpret_cast<uintptr_t>(t.address) % 16 != 0)
    fail(ErrorKind::value, "tensor map: the address must be a multiple of 16 bytes, got ",
         t.address, "; use a variant without TMA or copy the tensor");
  for (int i = 0; i < t.rank; ++i) check_dimension(t, i);
  const uint64_t inner = t.box[0] * dtype_bytes(t.dtype);
  if (inner % 16 != 0)
    fail(ErrorKind::value, "tensor map: the inner box must be a multiple of 16 bytes, got ", inner);
  const uint64_t span = swizzle_span(t.swizzle);
  if (span > 0 && inner > span)
    fail(ErrorKind::value, "tensor map: the inner box must be at most ", span,
         " bytes with this swizzle, got ", inner);
  if (t.nan_fill && !is_floating(t.dtype))
    fail(ErrorKind::value, "tensor map: NaN fill needs a floating dtype, got ", t.dtype);
}

// Bytes from the first element to behind the last; in double, which cannot overflow here.
double extent_bytes(const TiledTensor& t) {
  double bytes = double(t.dims[0]) * double(dtype_bytes(t.dtype));
  for (size_t i = 1; i < size_t(t.rank); ++i)
    bytes += double(t.dims[i] - 1) * double(t.strides[i - 1]);
  return bytes;
}

// Drivers up to 13010 set a bit for small tensors that must be clear; CUTLASS clears it likewise.
void clear_small_tensor_bit(TensorMap& map) {
  uint64_t word = 0;
  std::memcpy(&word, map.bytes.data() + 8, sizeof(word));
  word &= ~(uint64_t(1) << 21);
  std::memcpy(map.bytes.data() + 8, &word, sizeof(word));
}

}  // namespace

TensorMap encode_tiled(const TiledTensor& t, int device) {
  check_tensor(t);
  const DeviceGuard guard(device);
  TensorMap map;
  require_driver().tensor_map_encode_tiled(
      map.bytes.data(), element_type(t.dtype), uint32_t(t.rank), t.address, t.dims.data(),
      t.strides.data(), t.box.data(), t.element_strides.data(), 0, int(t.swizzle),
      int(t.l2_promotion), t.nan_fill ? 1 : 0);
  if (driver_version() <= 13010 && extent_bytes(t) < 131072) clear_small_tensor_bit(map);
  return map;
}

}  // namespace tensorcraft::cuda
