// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/elementwise/plan.h"
#include "tensorcraft/ops/elementwise/program.cuh"

// How each rung of an expression is chosen and started; host only. The text of `fused` and
// `strided` is made for each program, and `naive` is called by another name than its device code:
// complete() in expression.cpp says what of them is compiled.
namespace tensorcraft::kernel::elementwise {

using ExpressionChoice = op::Choice<ExpressionConfig>;

// Facts of a call that ExpressionParams do not hold.
struct ExpressionGiven {
  int num_steps, widest;
  int bytes[kMaxInputs + 1];  // of an element of each tensor, out first
};

constexpr bool is_wide(const ExpressionParams& p) { return p.size > (int64_t(1) << 31) - 1; }

inline ExpressionChoice fused(const ExpressionParams& p, const ExpressionGiven& given,
                              const op::Gpu& gpu) {
  const int n = 16 / given.widest, last = p.axes - 1;
  if (last > 0 && p.shape[last] % n != 0)
    return op::refuse("the last axis must be whole vectors of 16 bytes");
  ExpressionConfig config{.nested = p.axes > 1, .wide = p.axes > 1 && is_wide(p)};
  for (int t = 0; t <= p.num_inputs; ++t) {
    if (t && p.strides[t][last] == 0) {
      config.shared |= 1 << (t - 1);
      continue;
    }
    if (p.strides[t][last] != 1)
      return op::refuse("elements of the last axis must be neighbours, or one in an input");
    for (int axis = 0; axis < last; ++axis)
      if (p.strides[t][axis] % n != 0)
        return op::refuse("every stride must be a multiple of a vector of 16 bytes");
    const void* const address = t ? p.inputs[t - 1] : p.out;
    if (reinterpret_cast<uintptr_t>(address) % uint64_t(n * given.bytes[t]) != 0)
      return op::refuse("every address must be a multiple of a vector's bytes");
  }
  // As two inputs have it; more of them have as much in flight with fewer accesses each.
  const Config like = vector_config(Operation::add, p.size, given.widest, gpu.num_sms);
  const int max_vectors = p.num_inputs <= 2 ? like.vectors : p.num_inputs <= 4 ? 2 : 1;
  config.threads = like.threads;
  config.vectors = std::min(like.vectors, max_vectors);
  return op::Start<ExpressionConfig>{config,
                                     div_ceil(p.size, block_elements(config, given.widest))};
}

inline ExpressionChoice strided(const ExpressionParams& p, const ExpressionGiven&, const op::Gpu&) {
  return op::Start<ExpressionConfig>{
      {.threads = kThreads, .nested = p.axes > 1, .wide = p.axes > 1 && is_wide(p)},
      div_ceil(p.size, int64_t(kThreads))};
}

inline ExpressionChoice interpreted(const ExpressionParams& p, const ExpressionGiven& given,
                                    const op::Gpu&) {
  if (given.num_steps > InterpretedParams::kMaxSteps)
    return op::refuse("the parameters of a kernel hold 32 steps");
  return op::Start<ExpressionConfig>{{.threads = kThreads}, div_ceil(p.size, int64_t(kThreads))};
}

inline constexpr op::Rung<ExpressionParams, ExpressionGiven, ExpressionConfig> kExpressionRungs[] =
    {{.name = "fused",
      .file = "03_fused.cuh",
      .idea = "compiled for the expression; 16-byte accesses, several in flight in each thread",
      .choose = fused,
      .alias = "vectorized"},
     {.name = "strided",
      .file = "03_fused.cuh",
      .idea = "compiled for the expression; one thread an element, any strides",
      .choose = strided},
     {.name = "naive",
      .file = "02_interpreted.cuh",
      .idea = "one thread an element reads the steps as data: nothing is compiled for them",
      .choose = interpreted,
      .alias = "interpreted",
      .spills = "values are indexed at run time, so they are in local memory"}};

}  // namespace tensorcraft::kernel::elementwise
