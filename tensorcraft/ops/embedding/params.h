// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::embedding {

// Run time: out[i, :] = table[ids[i], :]. Strides are in elements; step is the distance of
// neighbouring ids, and that of the rows of out, one for each id.
struct Params {
  enum { kIds, kOut, kTensors };
  const void* ids;
  const void* table;
  void* out;
  int64_t count, rows, cols;  // ids; rows of the table; elements of a row
  int64_t table_row, table_step, out_step;
  uint32_t nan;  // the bits of a NaN: what an id outside the table gives
  int64_t step[kTensors];
};

struct Config {
  int threads = 256;
  int group = 1;   // threads that share a row
  int nested = 0;  // ids, or the rows of out, lie along more than one axis
};

}  // namespace tensorcraft::kernel::embedding
