// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::kernel::moe_combine {

// Run time: out[t, c] = sum over s of weights[t, s] * y[row_map[t, s], c]. Strides are in elements.
struct Params {
  const void* y;
  const int32_t* row_map;
  const float* weights;
  void* out;
  int64_t tokens, k, hidden, rows;
  int64_t y_strides[2], map_strides[2], weights_strides[2], out_strides[2];
  int32_t pieces;  // rows: of a token, a block has one
};

struct Config {
  int threads = 128;
};

// A slot of a token: the row that it adds, -1 for none, and by what.
struct Slot {
  int32_t row;
  float weight;
};
TC_HOST_DEVICE Slot slot_of(const Params& p, int64_t token, int64_t slot) {
  const int32_t row = p.row_map[token * p.map_strides[0] + slot * p.map_strides[1]];
  return {row < p.rows ? row : -1,
          p.weights[token * p.weights_strides[0] + slot * p.weights_strides[1]]};
}

}  // namespace tensorcraft::kernel::moe_combine
