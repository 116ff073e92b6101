// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// Shared-memory layouts in which the 16-byte units of 8 rows, one span apart, are in different
// banks. The copy engine writes them, wgmma reads them; ldmatrix users apply swizzled() themselves.
enum class Swizzle : int { none, bytes_32, bytes_64, bytes_128 };

// The bytes within which units change places; 16 if none do. 8 spans make one pattern.
TC_HOST_DEVICE constexpr uint32_t swizzle_span(Swizzle swizzle) { return 16u << int(swizzle); }
TC_HOST_DEVICE constexpr uint32_t swizzle_pattern(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 16u : 8 * swizzle_span(swizzle);
}

// The place of the byte that has this shared-memory address in the plain layout. The row of 128
// bytes in its group of 8 is XORed into the unit's number, as far as the span has units:
//   128 bytes: bits 4 to 6 ^= bits 7 to 9; 64: bits 4, 5 ^= 7, 8; 32: bit 4 ^= bit 7
// An offset serves as the address if the tile begins at a multiple of the pattern.
TC_HOST_DEVICE constexpr uint32_t swizzled(Swizzle swizzle, uint32_t address) {
  const uint32_t units = (swizzle_span(swizzle) - 1) & ~15u;
  return address ^ ((address >> 3) & units);
}

}  // namespace tensorcraft
