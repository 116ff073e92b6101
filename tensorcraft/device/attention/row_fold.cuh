// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/key_parts.h"
#include "tensorcraft/device/logit.cuh"

namespace tensorcraft {

// Folds the parts of a row, from the last one to the first. Whoever folds does these
// operations, so both modes of a rung give the same bits. A part that the row does not see
// changes nothing.
struct RowFold {
  float top = -kInfinity, sum = 0;  // top: a score, which `factor` makes an exponent of 2

  // Values of the parts before are multiplied by the one, those of the next part by the other.
  struct Factors {
    float kept, added;
  };
  TC_DEVICE Factors add(const RowSum& part, float factor) {
    const float next = fmaxf(top, part.top), base = next == -kInfinity ? 0.f : next;
    const Factors f{exp2_fast((top - base) * factor), exp2_fast((part.top - base) * factor)};
    sum = fmaf(part.sum, f.added, sum * f.kept);
    top = next;
    return f;
  }
  TC_DEVICE static float value(float kept, float added, const Factors& f) {
    return fmaf(added, f.added, kept * f.kept);
  }
};

}  // namespace tensorcraft
