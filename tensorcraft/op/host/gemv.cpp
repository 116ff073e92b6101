// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/gemv.hpp"

#include "tensorcraft/op/host/gemm_parts.hpp"
#include "tensorcraft/op/host/line_kernels.hpp"
#include "tensorcraft/op/host/parallel.hpp"

#include <algorithm>
#include <utility>

namespace tensorcraft::host {
namespace {

// Products a thread takes at once; elements of a run in memory, whose sums stay in a near cache.
constexpr int64_t kProductsAtOnce = int64_t(1) << 16;
constexpr int64_t kBlock = 8192;
constexpr int64_t kMaxParts = 16;
// Rows of A at once, which stay in a near cache with a few lines of B.
constexpr int64_t kRowsAtOnce = 64;

// D as rows: a column times a matrix is the transposed matrix times the row.
GemmProblem by_rows(GemmProblem g) {
  if (g.m == 1 || g.n > 1) return g;
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  for (ConstMatrix* m : {&g.a, &g.b, &g.c}) std::swap(m->row, m->column);
  std::swap(g.d.row, g.d.column);
  g.bias.column = 0;  // its one element is that of every column now
  return g;
}

// Sums of n columns from `first` on, whose elements are side by side: one walk along each, for all
// rows of A. Those of a row are n apart.
void dot_columns(const GemmProblem& g, RowsAt a, int64_t first, int64_t n, float* sums) {
  float* const buffer = scratch(Slot::line, kLines * kBlock);
  std::fill_n(sums, g.m * n, 0.0f);
  for (int64_t j = 0; j < n; j += kLines) {
    const int64_t lines = std::min<int64_t>(kLines, n - j);
    for (int64_t p = 0; p < g.k; p += kBlock) {
      const int64_t depth = std::min(kBlock, g.k - p);
      Lines b;
      for (int64_t l = 0; l < kLines; ++l)
        b[l] = l < lines ? line_at(address(g.b, p, first + j + l), g.b.dtype, g.b.row, depth,
                                   buffer + l * kBlock)
                         : b[0];
      float parts[kRowsAtOnce * kLines];
      line_kernels().dot({parts, kLines}, {a.data + p, a.pitch}, g.m, b, depth);
      for (int64_t row = 0; row < g.m; ++row)
        for (int64_t l = 0; l < lines; ++l) sums[row * n + j + l] += parts[row * kLines + l];
    }
  }
}

// Sums over the rows of the matrix from `first_row` up to `last_row`, whose elements are side by
// side: rows are added, each times its element of a.
void add_rows(const GemmProblem& g, float* a, int64_t first_row, int64_t last_row, int64_t first,
              int64_t n, float* sums) {
  float* const buffer = scratch(Slot::line, kLines * n);
  std::fill_n(sums, n, 0.0f);
  const auto line = [&](int64_t p, int64_t l) {
    return line_at(address(g.b, p, first), g.b.dtype, g.b.column, n, buffer + l * n);
  };
  int64_t p = first_row;
  for (; p + kLines <= last_row; p += kLines) {
    Lines b;
    for (int64_t l = 0; l < kLines; ++l) b[l] = line(p + l, l);
    line_kernels().add_scaled({sums, n}, {a + p, kLines}, 1, b, n);
  }
  for (; p < last_row; ++p) row_add_scaled(sums, line(p, 0), a[p], n);
}

// Likewise for one row of A and lines of bfloat16: one line after the other is one walk through
// memory, and nothing is written in between.
void dot_bfloat16_columns(const GemmProblem& g, const float* a, int64_t first, int64_t n,
                          float* sums) {
  for (int64_t j = 0; j < n; ++j)
    sums[j] = row_dot(a, reinterpret_cast<const uint16_t*>(address(g.b, 0, first + j)), g.k);
}

// D by columns.
void gemv_of_columns(const GemmProblem& g, RowsAt a) {
  const bool as_they_are =
      g.m == 1 && !g.batch_invariant && g.b.dtype == DType::bfloat16 && g.b.row == 1;
  const int64_t grain = div_up(kProductsAtOnce, g.k + 1);
  parallel_for(g.n, div_up(grain, kLines) * kLines, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += kBlock) {
      const int64_t n = std::min(kBlock, end - j);
      float* const sums = scratch(Slot::tile, g.m * n);
      if (as_they_are)
        dot_bfloat16_columns(g, a.data, j, n, sums);
      else
        dot_columns(g, a, j, n, sums);
      const FinishRow finish(g, j, n);
      for (int64_t row = 0; row < g.m; ++row) finish(row, sums + row * n);
    }
  });
}

// D, one row, by rows of B. Threads share the rows if there are too few columns to share, for long
// runs in memory; into how many parts depends on the problem alone, so the result does too.
void gemv_of_rows(const GemmProblem& g, float* a) {
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

// At most kRowsAtOnce rows.
void gemv_of_block(const GemmProblem& g) {
  float* const buffer = scratch(Slot::pack_a, g.m * g.k);
  for (int64_t row = 0; row < g.m; ++row)
    load_elements(buffer + row * g.k, address(g.a, row, 0), g.a.dtype, g.a.column, g.k);
  if (g.n == 1 || columns_are_lines(g))
    gemv_of_columns(g, {buffer, g.k});
  else
    gemv_of_rows(g, buffer);
}

}  // namespace

void gemv(const GemmProblem& problem) {
  const GemmProblem g = problem.batch_invariant ? problem : by_rows(problem);
  for (int64_t row = 0; row < g.m; row += kRowsAtOnce) {
    GemmProblem block = g;
    block.m = std::min(kRowsAtOnce, g.m - row);
    block.a.data = address(g.a, row, 0);
    block.d.data = address(g.d, row, 0);
    if (g.beta != 0.0f) block.c.data = address(g.c, row, 0);
    gemv_of_block(block);
  }
}

}  // namespace tensorcraft::host
