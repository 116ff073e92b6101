// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/norm_plan.h"
#include "tensorcraft/ops/layer_norm/params.h"

#include <string_view>

// Which Config and grid each rung gets; host only. A `problem` is why a rung declines, or empty.
// `given` holds what the call decides of a Config: .activation, .has_residual, .has_weight and
// .has_bias.
namespace tensorcraft::kernel::layer_norm {

using Launch = op::LaunchPlan<Config>;

// The tensors of a call as raw pointers, null where one is not given.
struct Tensors {
  const void *x, *residual, *weight, *bias;
  void *out, *residual_out;
  float *mean, *rstd;
};

// `rows` rows of `cols` elements, one behind another in every tensor that is given.
inline Params contiguous_params(const Tensors& t, int64_t rows, int64_t cols, float eps) {
  Params p{.x = t.x,
           .residual = t.residual,
           .weight = t.weight,
           .bias = t.bias,
           .out = t.out,
           .residual_out = t.residual_out,
           .mean = t.mean,
           .rstd = t.rstd};
  op::norm::set_contiguous(p, rows, cols, eps);
  return p;
}

// Elements of a 16-byte access, or 1 where a row cannot be divided into such accesses.
inline int vector_of(const Params& p, int element_bytes) {
  return op::is_vector_aligned(p.weight) && op::is_vector_aligned(p.bias)
             ? op::norm::rows_vector(p, element_bytes)
             : 1;
}

constexpr int in_registers_kept(const Config&, int vector) { return vector > 1 ? 4 * vector : 8; }
constexpr Config in_registers_config(int64_t cols, int vector) {
  return op::norm::in_registers_config<Config>(cols, vector);
}
constexpr Config quantized_in_registers_config(int64_t cols, int vector) {
  return op::norm::quantized_in_registers_config<Config>(cols, vector);
}

// 1024 threads of 4 accesses on a multiprocessor keep enough bytes in flight; 512 of them do where
// a residual is read too, which leaves each the registers for both. Wide weights take some as well.
constexpr int in_registers_min_blocks(const Config& c, bool crowded) {
  const int held = op::held_registers(c.slots, c.vector, c.has_residual);
  const int wanted = c.has_residual || held > 32 ? 512 : crowded || held > 16 ? 768 : 1024;
  return held <= 32 && wanted > c.threads ? wanted / c.threads : 1;
}

using op::norm::block_launch, op::norm::in_registers_launch, op::norm::naive_launch,
    op::norm::persistent_launch, op::norm::quantized_in_registers_launch,
    op::norm::quantized_in_registers_min_blocks, op::norm::staged_launch,
    op::norm::vectorized_launch;
using op::norm::in_registers_problem, op::norm::persistent_problem, op::norm::staged_doubt,
    op::norm::staged_problem, op::norm::vectorized_problem;

inline op::PersistentRows persistent_rows(const Params& p, const Config& given, int element_bytes,
                                          int weight_bytes, size_t device_bytes,
                                          bool has_clusters) {
  return op::norm::persistent_rows(p, given, element_bytes, given.has_weight + given.has_bias,
                                   weight_bytes, device_bytes, has_clusters);
}

}  // namespace tensorcraft::kernel::layer_norm
