// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// By how much a pair of a head turns.
struct Rotation {
  float cos, sin;
};

// The one convention of rotary embeddings: the first element turns towards the second.
TC_DEVICE void rotate(float& first, float& second, Rotation r) {
  const float x = first, y = second;
  first = x * r.cos - y * r.sin;
  second = y * r.cos + x * r.sin;
}

}  // namespace tensorcraft
