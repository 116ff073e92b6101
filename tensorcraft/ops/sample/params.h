// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::sample {

// A row draws first one of its chunks, then one of the chunk's elements.
inline constexpr int kChunk = 1024;
inline constexpr int64_t kMaxCols = int64_t(1) << 27;

// Run time. Of a setting the tensor counts, or the number if that is null. `step` is the distance
// of rows, 0 for a tensor that serves all of them.
struct Params {
  enum { kLogits, kOut, kTemperature, kTopK, kTopP, kMinP, kSeed, kOffset, kTensors };
  const void* logits;
  int64_t* out;
  void* workspace;  // split: a Part for each chunk of each row
  const float *temperatures, *top_ps, *min_ps;
  const void *top_ks, *seeds, *offsets;
  int64_t rows, cols, col_step;
  int64_t top_k, seed, offset;
  float temperature, top_p, min_p;
  int32_t wide_top_ks, wide_seeds, wide_offsets;  // int64_t, else int32_t
  int32_t row_counts;                             // rows share a seed, so the row is in the counter
  int64_t step[kTensors];
};

// Compile time.
struct Config {
  int threads = 128;
  int vector = 1;   // elements of an access
  int filters = 1;  // top_k, top_p or min_p may be there
  int nested = 0;   // rows do not merge into one axis
};

}  // namespace tensorcraft::kernel::sample
