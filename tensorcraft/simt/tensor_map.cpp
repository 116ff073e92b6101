// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_map.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

// No map of the CUDA driver begins so.
constexpr uint64_t kTiledMark = 0x70614d726f736e65, kIm2colMark = 0x6c6f63326d496e65;

// A dimension is at most 2^32, so its last index fits.
struct Encoded {
  uint64_t mark;
  void* address;
  uint64_t strides[4];
  uint32_t last_index[5];
  uint16_t box[5];
  int16_t lower[3], upper[3];  // of windows
  uint8_t element_strides[5];
  uint8_t rank, dtype, swizzle, nan_fill, rounds_to_tf32;
};
static_assert(sizeof(Encoded) <= sizeof(TensorMap));

Encoded encode(const TiledTensor& t, uint64_t mark) {
  Encoded e{};
  e.mark = mark;
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
  return e;
}
TensorMap map_of(const Encoded& e) {
  TensorMap map{};
  std::memcpy(map.bytes, &e, sizeof(e));
  return map;
}

std::optional<Encoded> encoded_in(const TensorMap& map, uint64_t mark) {
  Encoded e;
  std::memcpy(&e, map.bytes, sizeof(e));
  return e.mark == mark ? std::optional(e) : std::nullopt;
}
TiledTensor tensor_of(const Encoded& e) {
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

}  // namespace

TensorMap encode_tiled(const TiledTensor& t) {
  check_tiled(t);
  return map_of(encode(t, kTiledMark));
}

TensorMap encode_im2col(const Im2colTensor& t) {
  check_im2col(t);
  Encoded e = encode(t.images, kIm2colMark);
  for (size_t i = 0; i < 3; ++i) {
    e.lower[i] = int16_t(t.lower[i]);
    e.upper[i] = int16_t(t.upper[i]);
  }
  return map_of(e);
}

std::optional<TiledTensor> decode_tiled(const TensorMap& map) {
  const auto e = encoded_in(map, kTiledMark);
  return e ? std::optional(tensor_of(*e)) : std::nullopt;
}

std::optional<Im2colTensor> decode_im2col(const TensorMap& map) {
  const auto e = encoded_in(map, kIm2colMark);
  if (!e) return std::nullopt;
  Im2colTensor t{.images = tensor_of(*e)};
  for (size_t i = 0; i < 3; ++i) {
    t.lower[i] = e->lower[i];
    t.upper[i] = e->upper[i];
  }
  return t;
}

}  // namespace tensorcraft::simt
