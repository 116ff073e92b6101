// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tiled_tensor.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft {
namespace {

constexpr uint64_t kMaxDim = uint64_t(1) << 32;
constexpr uint64_t kStrideEnd = uint64_t(1) << 40;

uint64_t swizzle_span(TiledTensor::Swizzle swizzle) {
  return swizzle == TiledTensor::Swizzle::none ? 0 : uint64_t(16) << int(swizzle);
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

}  // namespace

void check_tiled(const TiledTensor& t) {
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
  if (t.rounds_to_tf32 && t.dtype != DType::float32)
    fail(ErrorKind::value, "tensor map: only float32 is rounded to tf32, got ", t.dtype);
}

}  // namespace tensorcraft
