// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/tree_mask.h"

namespace tensorcraft::kernel::attention_tiles {

// Bit i: key key_at(i) is in front of `end` and the tree hides it. All loads start before one is
// looked at, those of keys that the tree does not speak of from its first one.
template <int kCount, class KeyAt>
TC_DEVICE uint32_t hidden_by_tree(const TreeRow& row, int end, const KeyAt& key_at) {
  const TreeMask& mask = row.mask;
  uint32_t hidden = 0;
  const auto is_spoken_of = [&](int i) { return key_at(i) >= row.newest && key_at(i) < end; };
  const auto place = [&](int i) { return is_spoken_of(i) ? key_at(i) - row.newest : 0; };
  if (mask.words == 0) {
    const uint8_t* from = static_cast<const uint8_t*>(mask.data) + row.at;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      hidden |= uint32_t(is_spoken_of(i) & (from[place(i) * mask.key] == 0)) << i;
  } else {
    const uint32_t* from = static_cast<const uint32_t*>(mask.data) + row.at;
    const int bits = 32 * mask.words;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int m = place(i) < bits ? place(i) : 0;
      const bool is_seen = place(i) < bits && (from[m / 32 * mask.key] >> m % 32 & 1);
      hidden |= uint32_t(is_spoken_of(i) & !is_seen) << i;
    }
  }
  return hidden;
}

}  // namespace tensorcraft::kernel::attention_tiles
