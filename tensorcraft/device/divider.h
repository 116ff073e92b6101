// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// Division by a number that only the host knows, as a multiplication and a shift: an index is
// divided for each access of a kernel, and a division is 20 instructions.
struct Divider {
  uint32_t divisor, multiplier, shift;

  // For divisors from 1 to 2^31 - 1.
  TC_HOST_DEVICE static constexpr Divider of(int64_t divisor) {
    uint32_t shift = 0;
    while ((int64_t(1) << shift) < divisor) ++shift;
    const uint64_t excess = (uint64_t(1) << shift) - uint64_t(divisor);
    return {uint32_t(divisor), uint32_t((excess << 32) / uint64_t(divisor) + 1), shift};
  }

  // n / divisor for n below 2^31.
  TC_HOST_DEVICE constexpr uint32_t quotient(uint32_t n) const {
    return (uint32_t(uint64_t(n) * multiplier >> 32) + n) >> shift;
  }
};

}  // namespace tensorcraft
