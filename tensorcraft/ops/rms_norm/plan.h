// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/norm_plan.h"
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
  Params p{.x = t.x,
           .residual = t.residual,
           .weight = t.weight,
           .out = t.out,
           .residual_out = t.residual_out};
  op::norm::set_contiguous(p, rows, cols, eps);
  return p;
}

// Elements of a 16-byte access, or 1 where a row cannot be divided into such accesses.
inline int vector_of(const Params& p, int element_bytes) {
  return op::is_vector_aligned(p.weight) ? op::norm::rows_vector(p, element_bytes) : 1;
}

constexpr Config in_registers_config(int64_t cols, int vector) {
  return op::registers_config<Config>(cols, vector);
}

// 768 threads of 32 elements on a multiprocessor keep enough bytes in flight.
constexpr int in_registers_min_blocks(const Config& c, bool has_residual) {
  return op::held_registers(c.slots, c.vector, has_residual) <= 32 ? 768 / c.threads : 1;
}

using op::norm::block_launch, op::norm::in_registers_launch, op::norm::naive_launch,
    op::norm::quantized_in_registers_launch, op::norm::staged_launch, op::norm::vectorized_launch;
using op::norm::in_registers_problem, op::norm::staged_problem, op::norm::vectorized_problem;

inline std::string_view staged_doubt(const Params& p) {
  return p.cols <= op::kMaxRegisterRow ? "rows of up to 16384 elements are faster in registers"
                                       : "";
}

}  // namespace tensorcraft::kernel::rms_norm
