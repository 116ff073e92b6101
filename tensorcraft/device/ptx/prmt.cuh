// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::ptx {

// prmt.b32: byte i of the result is the one of which the selector's digit i says the number: 0 to 3
// of a, 4 to 7 of b.
TC_HOST_DEVICE uint32_t prmt_b32(uint32_t a, uint32_t b, uint32_t selector) {
#if TC_PTX
  uint32_t y;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(selector));
  return y;
#else
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t y = 0;
  for (int i = 0; i < 4; ++i) y |= uint32_t(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return y;
#endif
}

}  // namespace tensorcraft::ptx
