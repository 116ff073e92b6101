// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// The order of values as that of whole numbers: zeros of both signs are equal, a NaN is above any
// number. Never 0.
TC_HOST_DEVICE uint32_t order_of(float x) {
  const float value = x + 0.0f;  // -0 becomes 0
  const auto bits = bit_cast<uint32_t>(value);
  if (value != value) return 0xfffffffeu;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
TC_HOST_DEVICE float value_of(uint32_t order) {
  return bit_cast<float>(order & 0x80000000u ? order ^ 0x80000000u : ~order);
}

// Value and index as one number, larger if the element comes first: of equals the lower index. All
// keys of a row differ, and none is 0 or all ones. Indices are below 2^32.
TC_HOST_DEVICE uint64_t ranked(uint32_t order, int64_t index) {
  return uint64_t(order) << 32 | (0xffffffffu - uint32_t(index));
}
TC_HOST_DEVICE int64_t ranked_index(uint64_t key) { return 0xffffffffu - uint32_t(key); }

}  // namespace tensorcraft
