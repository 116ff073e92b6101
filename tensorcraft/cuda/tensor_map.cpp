// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/tensor_map.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"

#include <cstring>

namespace tensorcraft::cuda {
namespace {

constexpr int kTf32 = 11;  // float32 whose loads are rounded

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

// Bytes from the first element to past the last; in double, which cannot overflow here.
double extent_bytes(const TiledTensor& t) {
  double bytes = double(t.dims[0]) * double(dtype_bytes(t.dtype));
  for (size_t i = 1; i < size_t(t.rank); ++i)
    bytes += double(t.dims[i] - 1) * double(t.strides[i - 1]);
  return bytes;
}

// Drivers up to 13010 set a bit for small tensors in boxes that must be clear; CUTLASS clears it
// likewise, and leaves maps of windows as they are.
void clear_small_tensor_bit(TensorMap& map) {
  uint64_t word = 0;
  std::memcpy(&word, map.bytes + 8, sizeof(word));
  word &= ~(uint64_t(1) << 21);
  std::memcpy(map.bytes + 8, &word, sizeof(word));
}

}  // namespace

TensorMap encode_tiled(const TiledTensor& t, int device) {
  check_tiled(t);
  const DeviceGuard guard(device);
  TensorMap map{};
  require_driver().tensor_map_encode_tiled(
      map.bytes, t.rounds_to_tf32 ? kTf32 : element_type(t.dtype), uint32_t(t.rank), t.address,
      t.dims.data(), t.strides.data(), t.box.data(), t.element_strides.data(), 0, int(t.swizzle),
      int(t.l2_promotion), t.nan_fill ? 1 : 0);
  if (driver_version() <= 13010 && extent_bytes(t) < 131072) clear_small_tensor_bit(map);
  return map;
}

TensorMap encode_im2col(const Im2colTensor& windows, int device) {
  check_im2col(windows);
  const TiledTensor& t = windows.images;
  const DeviceGuard guard(device);
  TensorMap map{};
  require_driver().tensor_map_encode_im2col(
      map.bytes, t.rounds_to_tf32 ? kTf32 : element_type(t.dtype), uint32_t(t.rank), t.address,
      t.dims.data(), t.strides.data(), windows.lower.data(), windows.upper.data(), t.box[0],
      t.box[1], t.element_strides.data(), 0, int(t.swizzle), int(t.l2_promotion),
      t.nan_fill ? 1 : 0);
  return map;
}

// The change that clear_small_tensor_bit() made stays.
void replace_address(TensorMap& map, void* address, int device) {
  const DeviceGuard guard(device);  // the driver asks for a context
  const TensorMap before = map;
  require_driver().tensor_map_replace_address(map.bytes, address);
  std::memcpy(map.bytes + 8, before.bytes + 8, sizeof(uint64_t));
}

}  // namespace tensorcraft::cuda
