// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::embedding {

// Run time: out[i, :] = table[ids[i], :]. Strides are in elements; out_rows holds one row for each
// id.
struct Params {
  const void* ids;
  const void* table;
  void* out;
  int64_t count, rows, cols;  // ids; rows of the table; elements of a row
  int64_t table_row, table_step, out_step;
  RowMap ids_map, out_rows;
  uint32_t nan;  // the bits of a NaN: what an id outside the table gives
};

struct Config {
  int threads = 256;
  int group = 1;   // threads that share a row
  int nested = 0;  // ids, or the rows of out, lie along more than one axis
};

}  // namespace tensorcraft::kernel::embedding
