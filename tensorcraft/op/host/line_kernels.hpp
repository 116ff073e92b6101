// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/rows.hpp"

namespace tensorcraft::host {

// Rows of a matrix, `pitch` floats apart.
struct RowsAt {
  float* data;
  int64_t pitch;
};

// Products of `count` rows with kLines lines of n floats. A row has the same bits in any number of
// them.
struct LineKernels {
  // The first kLines of each row of sums = the dot products of its row of a and the lines.
  void (*dot)(RowsAt sums, RowsAt a, int64_t count, const Lines& b, int64_t n) = nullptr;
  // Each row of y += the lines, each times its number of the first kLines of the row of scales.
  void (*add_scaled)(RowsAt y, RowsAt scales, int64_t count, const Lines& x, int64_t n) = nullptr;
};

// The best this machine can run: AVX-512, AVX2 with FMA, or plain vectors of 16 bytes.
const LineKernels& line_kernels();

}  // namespace tensorcraft::host
