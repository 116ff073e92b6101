// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_map.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

constexpr uint64_t kMark = 0x70614d726f736e65;  // no map of the CUDA driver begins so

// A dimension is at most 2^32, so its last index fits.
struct Encoded {
  uint64_t mark = kMark;
  void* address;
  uint64_t strides[4];
  uint32_t last_index[5];
  uint16_t box[5];
  uint8_t element_strides[5];
  uint8_t rank, dtype, swizzle, nan_fill, rounds_to_tf32;
};
static_assert(sizeof(Encoded) <= sizeof(TensorMap));

}  // namespace

TensorMap encode_tiled(const TiledTensor& t) {
  check_tiled(t);
  Encoded e{};
  e.address = t.address;
  e.rank = uint8_t(t.rank);
  e.dtype = uint8_t(t.dtype);
  e.swizzle = uint8_t(t.swizzle);
  e.nan_fill = t.nan_fill;
  e.rounds_to_tf32 = t.rounds_to_tf32;
  for (size_t i = 0; i < size_t(t.rank); ++i) {
    e.last_index[i] = uint32_t(t.dims[i] - 1);
    e.box[i] = uint16_t(t.box[i]);
    e.element_strides[i] = uint8_t(t.element_strides[i]);
    if (i > 0) e.strides[i - 1] = t.strides[i - 1];
  }
  TensorMap map{};
  std::memcpy(map.bytes, &e, sizeof(e));
  return map;
}

std::optional<TiledTensor> decode_tiled(const TensorMap& map) {
  Encoded e;
  std::memcpy(&e, map.bytes, sizeof(e));
  if (e.mark != kMark) return std::nullopt;
  TiledTensor t{.dtype = DType(e.dtype),
                .address = e.address,
                .rank = e.rank,
                .swizzle = TiledTensor::Swizzle(e.swizzle),
                .nan_fill = e.nan_fill != 0,
                .rounds_to_tf32 = e.rounds_to_tf32 != 0};
  for (size_t i = 0; i < e.rank; ++i) {
    t.dims[i] = uint64_t(e.last_index[i]) + 1;
    t.box[i] = e.box[i];
    t.element_strides[i] = e.element_strides[i];
    if (i > 0) t.strides[i - 1] = e.strides[i - 1];
  }
  return t;
}

}  // namespace tensorcraft::simt
