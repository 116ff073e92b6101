// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// A sum of floats in one chain of any length: what each addition rounds away is summed beside it.
// That is apart, so an infinite sum stays infinite.
struct CompensatedSum {
  float sum = 0, lost = 0;

  TC_DEVICE void add(float x) {
    const float next = sum + x, added = next - sum;
    lost += (sum - (next - added)) + (x - added);
    sum = next;
  }
  TC_DEVICE float value() const { return sum - sum == 0 ? sum + lost : sum; }
};

}  // namespace tensorcraft
