// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/checked_index.cuh"
#include "tensorcraft/device/index.h"
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/device/rotation.cuh"
#include "tensorcraft/device/rows.h"
#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/ops/append_kv/params.h"

namespace tensorcraft::kernel::append_kv {

// What a number becomes in a cache whose elements are not codes, or are.
template <class Code>
inline constexpr bool kIsCode = sizeof(Code) == 1;
template <class Code>
TC_DEVICE Code stored(float x, float scale) {
  if constexpr (kIsCode<Code>)
    return to_code<Code>(x / scale);
  else
    return Code(scale == 1.f ? x : x / scale);
}

// What a head of a token is divided by.
template <class P>
TC_DEVICE float scale_of(const P& p, bool is_k, int64_t token, int head) {
  const Cache& cache = is_k ? p.k_cache : p.v_cache;
  if (!cache.scale) return 1.f;
  return cache
      .scale[row_offset(p, is_k ? P::kKScale : P::kVScale, token) + head * cache.scale_head];
}

// Where a token goes: a row of a block. block < 0: nowhere.
struct Place {
  int64_t block;
  int32_t row;

  TC_DEVICE int64_t offset(const Cache& cache, int head) const {
    return block * cache.block + row * cache.row + head * cache.head;
  }
};
template <class P>
TC_DEVICE Place place_of(const P& p, int64_t token) {
  const int64_t slot = integer_at(p.slots, row_offset(p, P::kSlots, token), p.wide_slots);
  if (slot < 0 || !is_index(slot, p.places, "append_kv", "a slot")) return {-1, 0};
  return {slot / p.block_size, int32_t(slot % p.block_size)};
}

// The row of cos and sin of a token; -1 if they have none, then it becomes NaN.
template <class P>
TC_DEVICE int64_t position_of(const P& p, int64_t token) {
  const int64_t at = integer_at(p.positions, row_offset(p, P::kPositions, token), p.wide_positions);
  return is_index(at, p.max_seq, "append_kv", "a position") ? at : -1;
}

}  // namespace tensorcraft::kernel::append_kv
