// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// By how much a pair of a head turns.
struct Rotation {
  float cos, sin;
};

// The one convention of rotary embeddings: the first element turns towards the second.
TC_DEVICE float rotated_first(float first, float second, float cos, float sin) {
  return first * cos - second * sin;
}
TC_DEVICE float rotated_second(float first, float second, float cos, float sin) {
  return second * cos + first * sin;
}
TC_DEVICE void rotate(float& first, float& second, Rotation r) {
  const float x = first, y = second;
  first = rotated_first(x, y, r.cos, r.sin);
  second = rotated_second(x, y, r.cos, r.sin);
}

}  // namespace tensorcraft
