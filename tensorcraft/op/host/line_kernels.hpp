// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace tensorcraft::host {

// Lines of a matrix that are read side by side: one alone does not keep memory busy.
constexpr int kLines = 4;
using Lines = const float* [kLines];

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

// Returns the kernels that this machine can run, best first: AVX-512, AVX2 with FMA, plain vectors
// of 16 bytes.
std::span<const LineKernels> all_line_kernels();
inline const LineKernels& line_kernels() { return all_line_kernels().front(); }

}  // namespace tensorcraft::host
