// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/gemm_parts.hpp"
#include "tensorcraft/op/host/gemv.hpp"
#include "tensorcraft/op/host/micro_kernel.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tensorcraft::host {
namespace {

// A block of A (kBlockRows x kBlockDepth) and the tile of sums stay in the second-level cache; one
// panel of B stays in the first.
constexpr int64_t kBlockRows = 96;  // a multiple of every micro kernel's rows
constexpr int64_t kBlockColumns = 384;
constexpr int64_t kBlockDepth = 384;
// The packed part of B is at most 16 MiB.
constexpr int64_t kPackedFloats = int64_t(1) << 22;
// Below this many multiplications a second thread costs more than it gives.
constexpr int64_t kGrainProducts = int64_t(1) << 20;

int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

// A `width` x `depth` part of a matrix, for packing: a panel holds, for each depth, the values of
// `panel` neighbouring positions along the width.
struct Part {
  const std::byte* data;
  DType dtype;
  int64_t width, depth;
  int64_t width_stride, depth_stride;
};

// A row of floats, in place if it already is one.
const float* line_of(const Part& part, int64_t offset, int64_t stride, int64_t n) {
  return line_at(advance(part.data, part.dtype, offset), part.dtype, stride, n,
                 scratch(Slot::line, n));
}

// Reads along the direction in which memory is nearer; what is beyond the width becomes 0.
void pack(float* to, int64_t panel, const Part& part) {
  const int64_t panels = div_up(part.width, panel);
  const int64_t panel_floats = panel * part.depth;
  if (part.width % panel != 0) std::fill_n(to + (panels - 1) * panel_floats, panel_floats, 0.0f);
  if (std::abs(part.width_stride) <= std::abs(part.depth_stride)) {
    for (int64_t p = 0; p < part.depth; ++p) {
      const float* line = line_of(part, p * part.depth_stride, part.width_stride, part.width);
      for (int64_t w = 0; w < part.width; w += panel)
        std::copy_n(line + w, std::min(panel, part.width - w), to + w * part.depth + p * panel);
    }
    return;
  }
  for (int64_t w = 0; w < part.width; ++w) {
    const float* line = line_of(part, w * part.width_stride, part.depth_stride, part.depth);
    float* column = to + w / panel * panel_floats + w % panel;
    for (int64_t p = 0; p < part.depth; ++p) column[p * panel] = line[p];
  }
}

// A range of columns of D for which B is packed, and how the work on it is cut.
struct Pass {
  const GemmProblem& problem;
  const MicroKernel& kernel;
  int64_t first_column, columns;
  int64_t depth;  // of a block
  int64_t block_rows, block_columns;
  float* packed_b;  // for each depth block, panels of kernel.columns

  int64_t padded_columns() const { return round_up(columns, kernel.columns); }
  const float* panel_of_b(int64_t p, int64_t depth_here, int64_t column) const {
    return packed_b + p * padded_columns() + column * depth_here;
  }
};

void pack_b(const Pass& pass) {
  const GemmProblem& g = pass.problem;
  const int64_t panels = div_up(pass.columns, pass.kernel.columns);
  const int64_t grain = std::max<int64_t>(1, kGrainProducts / (4 * g.k * pass.kernel.columns));
  parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
    const int64_t column = begin * pass.kernel.columns;
    const int64_t width = std::min(pass.columns, end * pass.kernel.columns) - column;
    for (int64_t p = 0; p < g.k; p += pass.depth) {
      const int64_t depth = std::min(pass.depth, g.k - p);
      pack(pass.packed_b + p * pass.padded_columns() + column * depth, pass.kernel.columns,
           {address(g.b, p, pass.first_column + column), g.b.dtype, width, depth, g.b.column,
            g.b.row});
    }
  });
}

// The block of D at (row, column of the pass): all of k, so no other task touches it.
void compute_block(const Pass& pass, int64_t row, int64_t column) {
  const GemmProblem& g = pass.problem;
  const MicroKernel& kernel = pass.kernel;
  const int64_t m = std::min(pass.block_rows, g.m - row);
  const int64_t n = std::min(pass.block_columns, pass.columns - column);
  const int64_t padded_m = round_up(m, kernel.rows), padded_n = round_up(n, kernel.columns);
  float* packed_a = scratch(Slot::pack_a, padded_m * pass.depth);
  float* tile = scratch(Slot::tile, padded_m * padded_n);
  for (int64_t p = 0; p < g.k; p += pass.depth) {
    const int64_t depth = std::min(pass.depth, g.k - p);
    pack(packed_a, kernel.rows, {address(g.a, row, p), g.a.dtype, m, depth, g.a.row, g.a.column});
    for (int64_t j = 0; j < padded_n; j += kernel.columns)
      for (int64_t i = 0; i < padded_m; i += kernel.rows)
        kernel.run(depth, packed_a + i * depth, pass.panel_of_b(p, depth, column + j),
                   tile + i * padded_n + j, padded_n, p > 0);
  }
  if (g.k == 0) std::fill_n(tile, padded_m * padded_n, 0.0f);
  const int64_t first = pass.first_column + column;
  const FinishRow finish(g, first, n);
  for (int64_t i = 0; i < m; ++i) finish(row + i, tile + i * padded_n);
}

// Smaller blocks if there are too few for the threads.
void choose_blocks(Pass& pass) {
  const int threads = num_threads();
  pass.block_rows = kBlockRows;
  pass.block_columns = std::min(kBlockColumns, pass.padded_columns());
  const auto blocks = [&] {
    return div_up(pass.problem.m, pass.block_rows) * div_up(pass.columns, pass.block_columns);
  };
  while (blocks() < 2 * threads && pass.block_columns >= 4 * pass.kernel.columns)
    pass.block_columns = round_up(pass.block_columns / 2, pass.kernel.columns);
}

void run_pass(Pass pass) {
  const GemmProblem& g = pass.problem;
  pass.packed_b = scratch(Slot::pack_b, std::max<int64_t>(1, g.k * pass.padded_columns()));
  if (g.k > 0) pack_b(pass);
  choose_blocks(pass);
  const int64_t across = div_up(pass.columns, pass.block_columns);
  const int64_t blocks = div_up(g.m, pass.block_rows) * across;
  const int64_t products = std::min(pass.block_rows, g.m) * pass.block_columns * (g.k + 1);
  parallel_for(blocks, div_up(kGrainProducts, products), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      compute_block(pass, b / across * pass.block_rows, b % across * pass.block_columns);
  });
}

void gemm_one(const GemmProblem& g) {
  if (is_gemv(g)) return gemv(g);
  const MicroKernel& kernel = micro_kernel();
  const int64_t depth_blocks = std::max<int64_t>(1, div_up(g.k, kBlockDepth));
  const int64_t depth = std::max<int64_t>(1, div_up(g.k, depth_blocks));
  const int64_t columns =
      std::max(kernel.columns * int64_t(4),
               kPackedFloats / std::max<int64_t>(1, g.k) / kernel.columns * kernel.columns);
  for (int64_t j = 0; j < g.n; j += columns)
    run_pass({.problem = g,
              .kernel = kernel,
              .first_column = j,
              .columns = std::min(columns, g.n - j),
              .depth = depth});
}

GemmProblem matrix_of_batch(const GemmProblem& g, int64_t index) {
  GemmProblem one = g;
  const auto move = [index](auto& m) {
    if (m.data) m.data = advance(static_cast<const std::byte*>(m.data), m.dtype, index * m.batch);
  };
  move(one.a);
  move(one.b);
  move(one.c);
  move(one.bias);
  one.d.data = advance(static_cast<std::byte*>(g.d.data), g.d.dtype, index * g.d.batch);
  return one;
}

void check_operand(const char* name, DType dtype) {
  if (!is_element_dtype(dtype))
    fail(ErrorKind::type, "gemm: ", name, ": dtype ", dtype,
         " is not supported on the host; expected a float of 8 to 32 bits or int8");
}

void check_dtype(const char* name, DType dtype) {
  if (!is_row_dtype(dtype))
    fail(ErrorKind::type, "gemm: ", name, ": dtype ", dtype,
         " is not supported on the host; expected float32, float16 or bfloat16");
}

}  // namespace

void gemm(const GemmProblem& g) {
  check_operand("a", g.a.dtype);
  check_operand("b", g.b.dtype);
  check_dtype("d", g.d.dtype);
  if (g.beta != 0.0f) check_dtype("c", g.c.dtype);
  if (g.bias.data) check_dtype("bias", g.bias.dtype);
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  // Many small matrices: one thread each. Few large ones: all threads on each.
  if (g.batch == 1 || (g.batch < num_threads() && g.m * g.n >= 256 * 256)) {
    for (int64_t b = 0; b < g.batch; ++b) gemm_one(matrix_of_batch(g, b));
    return;
  }
  const int64_t grain = div_up(kGrainProducts, g.m * g.n * (g.k + 1));
  parallel_for(g.batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) gemm_one(matrix_of_batch(g, b));
  });
}

}  // namespace tensorcraft::host
