// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/row_plan.h"

#include <algorithm>
#include <string_view>

// Which Config and grid layer_norm and rms_norm give each rung; host only. Their Params and Configs
// have fields of the same names. A `problem` is why a rung declines, or empty. `given` holds what
// the call decides of a Config. An operator has functions of its own, found by its types:
// vector_of(params, element_bytes), in_registers_kept(config, vector), the elements that a thread
// keeps at best, and in_registers_min_blocks(config, crowded), where `crowded` says that weights
// are wider than x, which takes registers too.
namespace tensorcraft::op::norm {

// `rows` rows of `cols` elements, one after another in every tensor that is given.
template <class Params>
void set_contiguous(Params& p, int64_t rows, int64_t cols, float eps) {
  const RowMap map = contiguous_rows(rows, cols);
  p.rows = rows;
  p.cols = cols;
  p.x_step = p.out_step = 1;
  p.residual_step = p.residual != nullptr;
  p.residual_out_step = p.residual_out != nullptr;
  p.maps = row_maps(map, p.residual ? map : RowMap{}, map, p.residual_out ? map : RowMap{});
  p.inverse_cols = 1.0f / float(cols);
  p.eps = eps;
}

// A tensor that is not given has neither address nor step.
template <class Params>
bool has_unit_steps(const Params& p) {
  const auto is_unit = [](const void* data, int64_t step) {
    return step == 1 || (!data && step == 0);
  };
  return p.cols == 1 || (p.x_step == 1 && p.out_step == 1 && is_unit(p.residual, p.residual_step) &&
                         is_unit(p.residual_out, p.residual_out_step));
}

// Elements of a 16-byte access, or 1 if a row cannot be divided into such accesses.
template <class Params>
int rows_vector(const Params& p, int element_bytes) {
  const int vector = 16 / element_bytes;
  const auto aligned = [&](const void* data, const RowMap& map) {
    return rows_vector_aligned(data, map, element_bytes);
  };
  return p.cols % vector == 0 && aligned(p.x, p.maps[p.kX]) && aligned(p.out, p.maps[p.kOut]) &&
                 aligned(p.residual, p.maps[p.kResidual]) &&
                 aligned(p.residual_out, p.maps[p.kResidualOut])
             ? vector
             : 1;
}

// The same of an operator's call if the output is codes of a byte each.
template <class Params>
int quantized_vector_of(const Params& p, int element_bytes) {
  Params q = p;
  q.out = nullptr;  // 16 bytes of x are fewer of codes
  q.maps.set(q.kOut, {});
  const int vector = vector_of(q, element_bytes);
  if (reinterpret_cast<uintptr_t>(p.out) % size_t(vector)) return 1;
  const RowMap& out = p.maps[p.kOut];
  for (int i = 0; i < out.axes; ++i)
    if (out.stride[i] % vector) return 1;
  return vector;
}

// `shape` is what a rung decides of the Config.
template <class Params, class Config>
LaunchPlan<Config> launch(const Params& p, Config given, const Config& shape, int64_t blocks,
                          int min_blocks = 1) {
  given.threads = shape.threads;
  given.group = shape.group;
  given.vector = shape.vector;
  given.slots = shape.slots;
  given.whole = shape.whole;
  given.cluster = shape.cluster;
  given.stages = shape.stages;
  given.nested = p.maps.is_nested();
  return {given, blocks, min_blocks};
}

template <class Params, class Config>
LaunchPlan<Config> naive_launch(const Params& p, const Config& given) {
  return launch(p, given, Config{.threads = 128, .group = 1}, div_ceil(p.rows, int64_t(128)));
}

template <class Params, class Config>
LaunchPlan<Config> vector_launch(const Params& p, const Config& given, int vector) {
  const int threads = p.cols <= 1024 ? 128 : 256;
  return launch(p, given, Config{.threads = threads, .group = threads, .vector = vector},
                std::min(p.rows, kMaxBlocks));
}

// A block walks over rows if there are more of them than a grid has blocks.
template <class Params, class Config>
LaunchPlan<Config> block_launch(const Params& p, const Config& given) {
  return vector_launch(p, given, 1);
}

template <class Params, class Config>
LaunchPlan<Config> vectorized_launch(const Params& p, const Config& given, int element_bytes) {
  return vector_launch(p, given, vector_of(p, element_bytes));
}

template <class Config>
constexpr Config in_registers_config(int64_t cols, int vector) {
  return registers_config<Config>(cols, vector, in_registers_kept(Config{}, vector), 1024);
}

// Codes are a few instructions an element, so a thread keeps more of a row than one that only moves
// it: fewer threads wait for the row's scale, and those of other rows run meanwhile.
template <class Config>
constexpr Config quantized_in_registers_config(int64_t cols, int vector) {
  return registers_config<Config>(cols, vector, vector > 1 ? 4 * vector : 8, 1024);
}
template <class Config>
constexpr int quantized_in_registers_min_blocks(const Config& c) {
  return std::max(1, (c.has_residual ? 768 : 1024) / c.threads);
}

// min_blocks: of a Config that has the shape and what is given.
template <class Params, class Config, class MinBlocks>
LaunchPlan<Config> registers_launch(const Params& p, const Config& given, Config shape,
                                    MinBlocks min_blocks) {
  shape.has_residual = given.has_residual;
  shape.has_weight = given.has_weight;
  return launch(p, given, shape, div_ceil(p.rows, int64_t(shape.threads / shape.group)),
                min_blocks(shape));
}

template <class Params, class Config>
LaunchPlan<Config> in_registers_launch(const Params& p, const Config& given, int element_bytes,
                                       int weight_bytes) {
  return registers_launch(
      p, given, in_registers_config<Config>(p.cols, vector_of(p, element_bytes)),
      [&](const Config& c) { return in_registers_min_blocks(c, weight_bytes > element_bytes); });
}

template <class Params, class Config>
LaunchPlan<Config> quantized_in_registers_launch(const Params& p, const Config& given,
                                                 int element_bytes) {
  return registers_launch(
      p, given,
      quantized_in_registers_config<Config>(p.cols, quantized_vector_of(p, element_bytes)),
      quantized_in_registers_min_blocks<Config>);
}

template <class Params, class Config>
LaunchPlan<Config> staged_launch(const Params& p, const Config& given, int element_bytes) {
  return op::staged_launch<Config>(
      p.rows, p.cols, element_bytes, given.has_residual ? 2 : 1,
      [&](const Config& shape, int64_t blocks) { return launch(p, given, shape, blocks); });
}

// `weights` is how many there are, of `weight_bytes` an element.
template <class Params, class Config>
PersistentRows persistent_rows(const Params& p, const Config& given, int element_bytes, int weights,
                               int weight_bytes, size_t device_bytes, bool has_clusters) {
  return op::persistent_rows(p.cols, element_bytes, given.has_residual ? 2 : 1,
                             weights * weight_bytes, device_bytes, has_clusters);
}

template <class Params, class Config>
LaunchPlan<Config> persistent_launch(const Params& p, const Config& given,
                                     const PersistentRows& split, int element_bytes, int num_sms) {
  return op::persistent_launch<Config>(
      p.rows, element_bytes, split, num_sms,
      [&](const Config& shape, int64_t blocks) { return launch(p, given, shape, blocks); });
}

template <class Params>
std::string_view vectorized_problem(const Params& p, int element_bytes) {
  if (!has_unit_steps(p)) return "the last axis must have stride 1";
  if (vector_of(p, element_bytes) == 1)
    return "rows must start at 16-byte boundaries and be a multiple of 16 bytes long";
  return "";
}

template <class Params>
std::string_view in_registers_problem(const Params& p) {
  if (!has_unit_steps(p)) return "the last axis must have stride 1";
  if (p.cols > kMaxRegisterRow) return "rows of more than 16384 elements do not fit the registers";
  if (p.rows > kMaxBlocks) return "more than 2^31 - 1 rows";
  return "";
}

template <class Params, class Config>
std::string_view staged_problem(const Params& p, const Config& given, int element_bytes,
                                bool has_clusters) {
  if (std::string_view why = vectorized_problem(p, element_bytes); !why.empty()) return why;
  return stage_problem(p.rows, p.cols, element_bytes, given.has_residual ? 2 : 1, has_clusters);
}

// Measured on an H200. Why a row is not worth a way through shared memory, or empty.
template <class Params>
std::string_view staged_doubt(const Params& p, int element_bytes) {
  return p.cols * element_bytes <= 32 * 1024 ? "rows of up to 32 KiB are faster in registers" : "";
}

template <class Params>
std::string_view persistent_problem(const Params& p, const PersistentRows& split, int element_bytes,
                                    bool has_clusters) {
  if (std::string_view why = vectorized_problem(p, element_bytes); !why.empty()) return why;
  return op::persistent_problem(p.rows, split, has_clusters);
}

}  // namespace tensorcraft::op::norm
