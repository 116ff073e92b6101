// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/gemv.hpp"

#include "tensorcraft/op/host/gemm_parts.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/simd.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace tensorcraft::host {
namespace {

// Products a thread takes at once; elements of a run in memory, whose sums stay in a near cache.
constexpr int64_t kProductsAtOnce = int64_t(1) << 16;
constexpr int64_t kBlock = 8192;
constexpr int64_t kMaxParts = 16;

// D as a row: a column times a matrix is the transposed matrix times the row.
GemmProblem with_one_row(GemmProblem g) {
  if (g.m == 1) return g;
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  for (ConstMatrix* m : {&g.a, &g.b, &g.c}) std::swap(m->row, m->column);
  std::swap(g.d.row, g.d.column);
  g.bias.column = 0;  // its one element is that of every column now
  return g;
}

// Lines of the matrix that are read side by side: one alone does not keep memory busy.
constexpr int kLines = 4;
constexpr int kLanes = 16;
using Lines = const float* [kLines];

// sums[r] += the dot product of a and line r. Spelled out: GCC 12 keeps an array of arrays of lanes
// in memory, at half the speed.
TC_HOST_CLONES void dot_lines(float* sums, const float* a, const Lines& b, int64_t n) {
  const float *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
  float lanes0[kLanes] = {}, lanes1[kLanes] = {}, lanes2[kLanes] = {}, lanes3[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      lanes0[l] += a[i + l] * b0[i + l];
      lanes1[l] += a[i + l] * b1[i + l];
      lanes2[l] += a[i + l] * b2[i + l];
      lanes3[l] += a[i + l] * b3[i + l];
    }
  for (int l = 0; i + l < n; ++l) {
    lanes0[l] += a[i + l] * b0[i + l];
    lanes1[l] += a[i + l] * b1[i + l];
    lanes2[l] += a[i + l] * b2[i + l];
    lanes3[l] += a[i + l] * b3[i + l];
  }
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) {
      lanes0[l] += lanes0[l + width];
      lanes1[l] += lanes1[l + width];
      lanes2[l] += lanes2[l + width];
      lanes3[l] += lanes3[l + width];
    }
  sums[0] += lanes0[0];
  sums[1] += lanes1[0];
  sums[2] += lanes2[0];
  sums[3] += lanes3[0];
}

// sums += the lines, each times its element of a.
TC_HOST_CLONES void add_lines(float* __restrict sums, const float* a, const Lines& b, int64_t n) {
  const float *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
  const float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
  for (int64_t i = 0; i < n; ++i) sums[i] += (a0 * b0[i] + a1 * b1[i]) + (a2 * b2[i] + a3 * b3[i]);
}

// Sums of n columns from `first` on, whose elements are side by side: one walk along each.
void dot_columns(const GemmProblem& g, const float* a, int64_t first, int64_t n, float* sums) {
  float* const buffer = scratch(Slot::line, kLines * kBlock);
  std::fill_n(sums, n, 0.0f);
  for (int64_t j = 0; j < n; j += kLines) {
    const int64_t lines = std::min<int64_t>(kLines, n - j);
    for (int64_t p = 0; p < g.k; p += kBlock) {
      const int64_t depth = std::min(kBlock, g.k - p);
      Lines b;
      for (int64_t l = 0; l < kLines; ++l)
        b[l] = l < lines ? line_at(address(g.b, p, first + j + l), g.b.dtype, g.b.row, depth,
                                   buffer + l * kBlock)
                         : b[0];
      float part[kLines] = {};
      dot_lines(part, a + p, b, depth);
      for (int64_t l = 0; l < lines; ++l) sums[j + l] += part[l];
    }
  }
}

// Sums over the rows of the matrix from `first_row` up to `last_row`, whose elements are side by
// side: rows are added, each times its element of a.
void add_rows(const GemmProblem& g, const float* a, int64_t first_row, int64_t last_row,
              int64_t first, int64_t n, float* sums) {
  float* const buffer = scratch(Slot::line, kLines * n);
  std::fill_n(sums, n, 0.0f);
  const auto line = [&](int64_t p, int64_t l) {
    return line_at(address(g.b, p, first), g.b.dtype, g.b.column, n, buffer + l * n);
  };
  int64_t p = first_row;
  for (; p + kLines <= last_row; p += kLines) {
    Lines b;
    for (int64_t l = 0; l < kLines; ++l) b[l] = line(p + l, l);
    add_lines(sums, a + p, b, n);
  }
  for (; p < last_row; ++p) row_add_scaled(sums, line(p, 0), a[p], n);
}

// D by columns.
void gemv_of_columns(const GemmProblem& g, const float* a) {
  const int64_t grain = div_up(kProductsAtOnce, g.k + 1);
  parallel_for(g.n, div_up(grain, kLines) * kLines, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += kBlock) {
      const int64_t n = std::min(kBlock, end - j);
      float* const sums = scratch(Slot::tile, n);
      dot_columns(g, a, j, n, sums);
      FinishRow(g, j, n)(0, sums);
    }
  });
}

// D by rows. Threads share the rows if there are too few columns to share, for long runs in memory;
// into how many parts depends on the problem alone, so the result does too.
void gemv_of_rows(const GemmProblem& g, const float* a) {
  const int64_t blocks = div_up(g.n, kBlock);
  const int64_t parts = std::clamp<int64_t>(g.k / 64, 1, div_up(kMaxParts, blocks));
  const int64_t rows = div_up(g.k, parts);
  float* const sums = scratch(Slot::pack_b, parts * g.n);
  const int64_t grain = div_up(kProductsAtOnce, std::min(g.n, kBlock) * (rows + 1));
  parallel_for(parts * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task / blocks, j = task % blocks * kBlock;
      add_rows(g, a, std::min(g.k, part * rows), std::min(g.k, (part + 1) * rows), j,
               std::min(kBlock, g.n - j), sums + part * g.n + j);
    }
  });
  for (int64_t part = 1; part < parts; ++part) row_add(sums, sums + part * g.n, g.n);
  FinishRow(g, 0, g.n)(0, sums);
}

}  // namespace

void gemv(const GemmProblem& problem) {
  const GemmProblem g = with_one_row(problem);
  const float* const a =
      line_at(address(g.a, 0, 0), g.a.dtype, g.a.column, g.k, scratch(Slot::pack_a, g.k));
  const bool columns_are_lines = g.n == 1 || std::abs(g.b.row) < std::abs(g.b.column);
  (columns_are_lines ? gemv_of_columns : gemv_of_rows)(g, a);
}

}  // namespace tensorcraft::host
