// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// A place in a ring of stages and the parity of its current phase. Who reads starts at {0, 0}; who
// fills starts with parity 1, which a fresh barrier has passed.
template <int kStages>
struct StageCursor {
  int stage = 0;
  uint32_t parity = 0;

  TC_DEVICE void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
  TC_DEVICE void advance(uint32_t count) {
    const uint32_t next = uint32_t(stage) + count;
    parity ^= next / kStages & 1;
    stage = int(next % kStages);
  }
};

}  // namespace tensorcraft
