// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/attention/request.cuh"

namespace tensorcraft::kernel::attention_tiles {

// The mask adds this to the score of a key: of a bool -inf if the key is not seen. T: the dtype of
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

}  // namespace tensorcraft::kernel::attention_tiles
