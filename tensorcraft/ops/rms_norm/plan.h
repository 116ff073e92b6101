// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/rms_norm/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
// `given` holds what the call decides of a Config: .has_residual and .has_weight.
namespace tensorcraft::kernel::rms_norm {

using Launch = op::LaunchPlan<Config>;

// The tensors of a call as raw pointers, null where one is not given.
struct Tensors {
  const void *x, *residual, *weight;
  void *out, *residual_out;
};

// `rows` rows of `cols` elements, one behind another in every tensor that is given.
inline Params contiguous_params(const Tensors& t, int64_t rows, int64_t cols, float eps) {
  const RowMap map = op::contiguous_rows(rows, cols);
  Params p{.x = t.x,
           .residual = t.residual,
           .weight = t.weight,
           .out = t.out,
           .residual_out = t.residual_out,
           .rows = rows,
           .cols = cols,
           .x_step = 1,
           .out_step = 1,
           .x_rows = map,
           .out_rows = map,
           .inverse_cols = 1.0f / float(cols),
           .eps = eps};
  if (t.residual) p.residual_step = 1, p.residual_rows = map;
  if (t.residual_out) p.residual_out_step = 1, p.residual_out_rows = map;
  return p;
}

// A tensor that is not given has neither address nor step.
inline bool has_unit_steps(const Params& p) {
  const auto is_unit = [](const void* data, int64_t step) {
    return step == 1 || (!data && step == 0);
  };
  return p.cols == 1 || (p.x_step == 1 && p.out_step == 1 && is_unit(p.residual, p.residual_step) &&
                         is_unit(p.residual_out, p.residual_out_step));
}

// Elements of a 16-byte access, or 1 where a row cannot be divided into such accesses.
inline int vector_of(const Params& p, int element_bytes) {
  const int vector = 16 / element_bytes;
  const auto aligned = [&](const void* data, const RowMap& map) {
    return op::rows_vector_aligned(data, map, element_bytes);
  };
  return p.cols % vector == 0 && aligned(p.x, p.x_rows) && aligned(p.out, p.out_rows) &&
                 aligned(p.residual, p.residual_rows) &&
                 aligned(p.residual_out, p.residual_out_rows) && op::is_vector_aligned(p.weight)
             ? vector
             : 1;
}

inline Launch launch(const Params& p, const Config& given, Config config, int64_t blocks,
                     int min_blocks = 1) {
  config.has_residual = given.has_residual;
  config.has_weight = given.has_weight;
  config.nested = p.x_rows.axes > 1 || p.out_rows.axes > 1 || p.residual_rows.axes > 1 ||
                  p.residual_out_rows.axes > 1;
  return {config, blocks, min_blocks};
}

inline Launch naive_launch(const Params& p, const Config& given) {
  return launch(p, given, {.threads = 128, .group = 1}, div_ceil(p.rows, int64_t(128)));
}

// A block walks over rows where there are more of them than a grid has blocks.
inline Launch block_launch(const Params& p, const Config& given) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return launch(p, given, {.threads = threads, .group = threads}, std::min(p.rows, op::kMaxBlocks));
}

inline Launch vectorized_launch(const Params& p, const Config& given, int element_bytes) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return launch(p, given,
                {.threads = threads, .group = threads, .vector = vector_of(p, element_bytes)},
                std::min(p.rows, op::kMaxBlocks));
}

constexpr Config in_registers_config(int64_t cols, int vector) {
  const auto [threads, group, slots] = op::split_rows(cols, vector);
  return {.threads = threads,
          .group = group,
          .vector = vector,
          .slots = slots,
          .whole = cols == int64_t(group) * vector * slots};
}

// 768 threads of 32 elements on a multiprocessor keep enough bytes in flight.
constexpr int in_registers_min_blocks(const Config& c, bool has_residual) {
  return op::held_registers(c.slots, c.vector, has_residual) <= 32 ? 768 / c.threads : 1;
}

inline Launch in_registers_launch(const Params& p, const Config& given, int element_bytes) {
  const Config config = in_registers_config(p.cols, vector_of(p, element_bytes));
  return launch(p, given, config, div_ceil(p.rows, int64_t(config.threads / config.group)),
                in_registers_min_blocks(config, given.has_residual));
}

inline Launch staged_launch(const Params& p, const Config& given, int element_bytes) {
  return op::staged_launch<Config>(
      p.rows, p.cols, element_bytes, given.has_residual ? 2 : 1,
      [&](const Config& config, int64_t blocks) { return launch(p, given, config, blocks); });
}

// Elements of an access where the output is codes of a byte each.
inline int quantized_vector_of(const Params& p, int element_bytes) {
  Params q = p;
  q.out = nullptr;  // 16 bytes of x are fewer of codes
  q.out_rows = {};
  const int vector = vector_of(q, element_bytes);
  if (reinterpret_cast<uintptr_t>(p.out) % size_t(vector)) return 1;
  for (int i = 0; i < p.out_rows.axes; ++i)
    if (p.out_rows.stride[i] % vector) return 1;
  return vector;
}

inline Launch quantized_in_registers_launch(const Params& p, const Config& given,
                                            int element_bytes) {
  const Config config = in_registers_config(p.cols, quantized_vector_of(p, element_bytes));
  return launch(p, given, config, div_ceil(p.rows, int64_t(config.threads / config.group)),
                in_registers_min_blocks(config, given.has_residual));
}

inline std::string_view vectorized_problem(const Params& p, int element_bytes) {
  if (!has_unit_steps(p)) return "the last axis must have stride 1";
  if (vector_of(p, element_bytes) == 1)
    return "rows must start at 16-byte boundaries and be a multiple of 16 bytes long";
  return "";
}

inline std::string_view in_registers_problem(const Params& p) {
  if (!has_unit_steps(p)) return "the last axis must have stride 1";
  if (p.cols > op::kMaxRegisterRow)
    return "rows of more than 16384 elements do not fit the registers";
  if (p.rows > op::kMaxBlocks) return "more than 2^31 - 1 rows";
  return "";
}

inline std::string_view staged_problem(const Params& p, const Config& given, int element_bytes,
                                       bool has_clusters) {
  if (std::string_view why = vectorized_problem(p, element_bytes); !why.empty()) return why;
  return op::stage_problem(p.rows, p.cols, element_bytes, given.has_residual ? 2 : 1, has_clusters);
}

inline std::string_view staged_doubt(const Params& p) {
  return p.cols <= op::kMaxRegisterRow ? "rows of up to 16384 elements are faster in registers"
                                       : "";
}

}  // namespace tensorcraft::kernel::rms_norm
