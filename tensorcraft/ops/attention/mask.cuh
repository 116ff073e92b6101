// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/ops/attention/request.cuh"

namespace tensorcraft::kernel::attention {

// What the mask adds to the score of a key: of a bool -inf if the key is not seen. T: the dtype of
// q.
template <class T>
TC_DEVICE float mask_at(const Mask& m, int64_t at) {
  switch (m.type) {
    case MaskType::none:
      return 0.f;
    case MaskType::bools:
      return static_cast<const uint8_t*>(m.data)[at] ? 0.f : -kInfinity;
    case MaskType::float32s:
      return static_cast<const float*>(m.data)[at];
    case MaskType::of_q:
      return float(static_cast<const T*>(m.data)[at]);
  }
  return 0.f;
}
// Where it lies for a query of a head and key 0.
TC_DEVICE int64_t mask_row(const Mask& m, int b, int h, int i) {
  return b * m.batch + h * m.head + i * m.row;
}

// The sink of a head; -inf: none, as for rows of no request.
TC_DEVICE float sink_of(const Params& p, int request, int h) {
  return p.sinks && request >= 0 ? p.sinks[h] : -kInfinity;
}

// Makes the scores of one row of a tile logits: softcap, then the mask. each(f) calls f(score, key)
// for the row's scores; keys count from the tile's first one.
template <class T, Config C, class Each>
TC_DEVICE void to_logits(const Params& p, const QueryTile& tile, int b, int h, int row,
                         const Each& each) {
  if (C.options == kSoftcap || p.softcap > 0)
    each([&](float& s, int) { s = capped(s * p.scale, p.softcap); });
  else
    each([&](float& s, int) { s *= p.scale; });
  if constexpr (C.options >= kMasks) {
    const Mask& m = p.mask;
    if (m.type == MaskType::none || row >= tile.rows) return;
    const KeyRange seen = tile.seen(row);
    const int64_t first = mask_row(m, b, h, tile.first + row) + tile.first_key * m.key;
    const auto add = [&](const auto& value_at) {
      each([&](float& s, int key) {
        if (key < seen.begin || key >= seen.end) return;
        const float added = value_at(first + key * m.key);
        s = added == -kInfinity ? added : s + added;
      });
    };
    if (m.type == MaskType::bools)
      add([&](int64_t at) { return static_cast<const uint8_t*>(m.data)[at] ? 0.f : -kInfinity; });
    else if (m.type == MaskType::float32s)
      add([&](int64_t at) { return static_cast<const float*>(m.data)[at]; });
    else
      add([&](int64_t at) { return float(static_cast<const T*>(m.data)[at]); });
  }
}

}  // namespace tensorcraft::kernel::attention
