// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/expression/operation.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::elementwise {

using namespace expression;

// Run time: inputs are broadcast to the shape of out, `b` is unused if there is one input. The
// maps give the offset of an element from its row-major index.
struct Params {
  const void* a;
  const void* b;
  void* out;
  int64_t size;
  RowMap a_map, b_map, out_map;
  float alpha;          // the operation's one parameter: slope, scale, beta
  uint64_t fill_value;  // the bits of one element
};

// Compile time. A single input is one element that every output shares; one that repeats is
// contiguous, and so many whole vectors that no vector of the output crosses its end.
struct Config {
  Operation operation;
  int threads = 256;
  int vectors = 4;  // vector accesses a thread has in flight, for each input
  int single_a = 0;
  int single_b = 0;
  int repeats_a = 0;
  int repeats_b = 0;
  int nested = 0;  // a tensor does not merge into one axis
};

// Elements of an input that repeats.
TC_HOST_DEVICE int64_t period_of(const RowMap& map) { return map.size[1]; }

}  // namespace tensorcraft::kernel::elementwise
