// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: queries of a request that are many are multiplied by wgmma, 128 rows of a block at
// once, which is attention's rung `persistent` with another producer: the copy engine brings the
// keys of a tile block of the cache by block, one box each. Queries of the heads that share keys
// lie side by side in memory, so one box brings them as rows:
//   packed:  a key is read once for 16 to 64 rows, and multiplied for 16 of them at a time
//   here:    once for 128, and multiplied for 64 at a time while others are weighed
// Under a causal limit the rows of a tile stand at few places, so few products are hidden.
// Codes of 8 bits become 16-bit tiles on the way, once each.
// Demands: sm_90a, blocks of 16 keys or a multiple, no scale of each key.
#include "tensorcraft/ops/paged_attention/page_producer.cuh"

namespace tensorcraft::kernel::paged_attention {

struct Persistent {
  static constexpr bool begins_itself = true;
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const HopperParams& p) {
    attend_by_pages<T, Code, C>(p);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
