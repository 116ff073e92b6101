// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Attention of few queries divides the keys of a request into parts for as many blocks, whose
// results a second kernel combines.
namespace tensorcraft {

// The keys of a part. It is the same for all calls, so a result does not depend on what else is in
// the batch.
inline constexpr int kPartKeys = 512;

// The results of parts of some rows, queries of heads: of each row and part its values, and behind
// all values the lse.
struct KeyParts {
  float* memory;
  int64_t rows;
  int parts, values;  // of a row; of a part

  TC_HOST_DEVICE float* values_of(int64_t row, int part) const {
    return memory + (row * parts + part) * values;
  }
  TC_HOST_DEVICE float* lse_of(int64_t row, int part) const {
    return values_of(rows, 0) + row * parts + part;
  }
  TC_HOST_DEVICE int64_t bytes() const {
    return rows * parts * (values + 1) * int64_t(sizeof(float));
  }
};

}  // namespace tensorcraft
