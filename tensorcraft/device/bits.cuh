// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Bits of a word, as ballots give them.
namespace tensorcraft {

// The place of the lowest bit that is 1, of which there is one.
TC_DEVICE int lowest_bit(uint32_t bits) {
#if TC_PTX
  return __ffs(int(bits)) - 1;
#else
  return __builtin_ctz(bits);
#endif
}

// How many are 1.
TC_DEVICE int count_bits(uint32_t bits) {
#if TC_PTX
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

}  // namespace tensorcraft
