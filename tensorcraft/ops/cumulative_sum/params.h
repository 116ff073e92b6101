// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/output_type.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::cumulative_sum {

// The function of the elements up to each one; `float_prod` is the product of integers as floats.
enum class Operation : int { sum, prod, float_prod };

// Run time. Steps are strides along the axis.
struct Params {
  const void* x;
  void* out;
  void* workspace;  // if segments > 1: a ticket, a flag for each segment, then their sums
  int64_t rows, cols;
  int64_t x_step, out_step;
  int64_t segments, segment_cols;  // of a row: each is a block's, and whole tiles but for the last
  int64_t sums;                    // the first byte of the sums in the workspace
  RowMap x_rows, out_rows;
  OutputType out_type = OutputType::own;
  int initial = 0;   // rows of out have a 0 before their first element, or a 1 before products
  int of_bools = 0;  // elements of 1 byte are those of a bool, true if they are not 0
};

// Compile time. A thread takes `vector` neighbours of a row at once, in accesses of 16 bytes if
// `wide`.
struct Config {
  Operation operation = Operation::sum;
  int threads = 256;
  int vector = 1;
  int wide = 0;
  int nested = 0;    // rows do not merge into one axis
  int converts = 0;  // out_type is not `own`
};

}  // namespace tensorcraft::kernel::cumulative_sum
