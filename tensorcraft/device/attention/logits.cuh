// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/attention/mask.cuh"

// Softcap and mask of the rungs above naive, in registers.
namespace tensorcraft::kernel::attention_tiles {

// Scores of one row of a tile: score_at(i) is one of kCount and key_at(i) its key, counted from the
// tile's first one.
template <int kCount, class ScoreAt, class KeyAt>
struct RowScores {
  ScoreAt score_at;
  KeyAt key_at;

  // Adds value_at(j) to the scores of those keys j that are seen.
  template <class ValueAt>
  TC_DEVICE void add(KeyRange seen, const ValueAt& value_at) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int key = key_at(i);
      if (key < seen.begin || key >= seen.end) continue;
      const float added = value_at(key);
      score_at(i) = added == -kInfinity ? added : score_at(i) + added;
    }
  }
};

// Makes them logits: softcap, then the mask.
template <class T, Config C, int kCount, class ScoreAt, class KeyAt>
TC_DEVICE void to_logits(const Params& p, const QueryTile& tile, int b, int h, int row,
                         const ScoreAt& score_at, const KeyAt& key_at) {
  if (C.options == kSoftcap || p.softcap > 0) {
    const SoftCap cap(p.scale, p.softcap);
#pragma unroll
    for (int i = 0; i < kCount; ++i) score_at(i) = cap(score_at(i));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) score_at(i) *= p.scale;
  }
  if constexpr (C.options >= kMasks) {
    const Mask& m = p.mask;
    if (m.type == MaskType::none || row >= tile.rows) return;
    const RowScores<kCount, ScoreAt, KeyAt> scores{score_at, key_at};
    const KeyRange seen = tile.seen(row);
    const int64_t first = mask_row(m, b, h, tile.first + row) + tile.first_key * m.key;
    if (m.type == MaskType::bools) {
      const auto* at = static_cast<const uint8_t*>(m.data) + first;
      scores.add(seen, [&](int key) { return at[key * m.key] ? 0.f : -kInfinity; });
    } else if (m.type == MaskType::float32s) {
      const auto* at = static_cast<const float*>(m.data) + first;
      scores.add(seen, [&](int key) { return at[key * m.key]; });
    } else {
      const auto* at = static_cast<const T*>(m.data) + first;
      scores.add(seen, [&](int key) { return float(at[key * m.key]); });
    }
  }
}

}  // namespace tensorcraft::kernel::attention_tiles
