// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/checked_index.cuh"
#include "tensorcraft/ops/transfer_hicache/params.h"

namespace tensorcraft::kernel::transfer_hicache {

// What an element moves between: a token's part of one layer, in both caches.
struct Element {
  const unsigned char *k_from, *v_from;
  unsigned char *k_to, *v_to;
};

// Element `item` of all layers. False: one of its tokens is none of the cache, so nothing moves.
TC_DEVICE bool find_element(Element& e, const Params& p, int64_t item) {
  const int64_t layer = item / p.count, i = item - layer * p.count;
  const int64_t to = token_at(p.dst, i), from = token_at(p.src, i);
  if (!is_index(to, p.dst.places, "transfer_hicache", "a token of idx_dst")) return false;
  if (!is_index(from, p.src.places, "transfer_hicache", "a token of idx_src")) return false;
  const int64_t at = offset_of(p.dst, to), source = offset_of(p.src, from);
  e = {keys_of(p.src, layer) + source, values_of(p.src, layer) + source, keys_of(p.dst, layer) + at,
       values_of(p.dst, layer) + at};
  return true;
}

}  // namespace tensorcraft::kernel::transfer_hicache
