// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: values are the first elements of keys, as latent attention has them, so a tile is
// brought once for scores and for results. Both are so long that the sums of 64 rows fill the
// registers of two warpgroups, which multiply weights by half of the columns of the values each. A
// third one makes the weights, and lays them in place of what only the scores needed of the keys.
//   packed, split_kv:  slices of values for blocks beside each other, which compute scores anew
//   here:              once, on wgmma, while the weights of the tile before are multiplied
// Few queries have parts of their keys, as in split_wgmma, which are folded in device memory.
// Demands besides those of persistent: no v_cache, v_dim above 256, 16-bit caches without scales.
#include "tensorcraft/ops/paged_attention/page_producer.cuh"

namespace tensorcraft::kernel::paged_attention {

struct LatentWgmma {
  static constexpr bool begins_itself = true;
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    attend_by_pages<T, Code, C>(p);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
