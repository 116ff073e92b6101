// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// A sum of floats in one chain of any length: what an addition rounds away joins the next element.
// Beside it is the plain sum, which stays infinite if an element is.
struct CompensatedSum {
  float sum = 0, rest = 0, plain = 0;

  TC_DEVICE void add(float x) {
    plain += x;
    const float whole = x + rest, next = sum + whole;
    rest = whole - (next - sum);
    sum = next;
  }
  TC_DEVICE float value() const { return sum - sum == 0 ? sum : plain; }
};

}  // namespace tensorcraft
