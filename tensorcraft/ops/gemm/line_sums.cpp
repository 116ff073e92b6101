// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/line_sums.hpp"

#include "tensorcraft/op/choice/ladder.hpp"
#include "tensorcraft/ops/gemm/choice/packed_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tensorcraft::kernel::gemm {
namespace {

constexpr ConfigField kLineSumsFields[] = {{"threads"}};
const jit::Rung& kLineSums =
    op::make_rung("gemm", "line_sums", "parts/line_sums.cuh", kLineSumsFields, "LineSumsConfig");

LinesToSum to_sum(const Lines& x, const Matrix& of, int64_t lines, int64_t entries, int64_t out_at,
                  Layout along_k) {
  return {.in = of,
          .lines = lines,
          .all_lines = lines * entries,
          .out_at = out_at,
          .is_along_k = x.layout == along_k,
          .has_words = x.layout == along_k && x.are_dense() && has_aligned_lines(x)};
}

}  // namespace

ZeroPoints zero_points(const Problem& q) {
  const auto stride = [](const auto& t) { return t && t->rank() ? t->stride(0) : 0; };
  return {.a = data_of<const int32_t>(q.a_zero),
          .b = data_of<const int32_t>(q.b_zero),
          .a_stride = stride(q.a_zero),
          .b_stride = stride(q.b_zero),
          .sums = nullptr,
          .b_sums_at = q.b_zero ? q.m() * q.batch() : 0};
}

void add_line_sums(op::Plan& plan, const Params& p, const Given& given) {
  LineSumsParams sums{
      .of = {}, .workspace = nullptr, .k = p.k, .batch_shape = {}, .batch_rank = p.batch_rank};
  std::copy_n(p.batch_shape, kMaxBatchRank, sums.batch_shape);
  const int64_t columns = given.gated ? 2 * p.n : p.n;
  if (p.zero.b) sums.of[0] = to_sum(a_lines(p, given), p.a, p.m, given.batch, 0, Layout::row_major);
  if (p.zero.a) {
    Matrix b = p.b;
    std::swap(b.row_stride, b.col_stride);
    sums.of[1] =
        to_sum(b_lines(p, given), b, columns, given.batch, p.zero.b_sums_at, Layout::column_major);
  }
  const LineSumsConfig config;
  int64_t blocks = 0, lines = 0;
  for (const LinesToSum& x : sums.of) {
    blocks += div_ceil(x.all_lines, int64_t(lines_of_block(config, x.is_along_k != 0)));
    lines += x.all_lines;
  }
  if (blocks > op::kMaxBlocks)
    fail(ErrorKind::unsupported, "gemm: zero points of ", lines,
         " rows and columns are not supported; cut the batch into several calls");
  const op::Start<LineSumsConfig> start{config, blocks};
  op::Step& step = plan.add_preparation(op::make_step(kLineSums, {}, start), sums);
  step.workspace_at = offsetof(LineSumsParams, workspace);
  plan.workspace_bytes +=
      size_t(round_up(lines * int64_t(sizeof(int32_t)), int64_t(kPackAlignment)));
  plan.main().workspace_at = int32_t(offsetof(Params, zero) + offsetof(ZeroPoints, sums));
}

}  // namespace tensorcraft::kernel::gemm
