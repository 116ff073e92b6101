// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch_plan.h"
#include "tensorcraft/ops/elementwise/params.h"

#include <algorithm>

// Which Config and grid each rung gets; host only.
namespace tensorcraft::kernel::elementwise {

using Launch = op::LaunchPlan<Config>;

inline constexpr int kThreads = 256;

// The map of `size` neighbours.
constexpr RowMap contiguous_map(int64_t size) {
  RowMap map{};
  if (size == 1) return map;
  map.size[0] = size;
  map.stride[0] = 1;
  map.axes = 1;
  return map;
}

// `size` neighbours in every tensor; an operation with fewer than two inputs repeats the one
// before.
inline Params contiguous_params(const void* a, const void* b, void* out, int64_t size,
                                float alpha = 0, uint64_t fill_value = 0) {
  const RowMap map = contiguous_map(size);
  return {.a = a,
          .b = b,
          .out = out,
          .size = size,
          .a_map = map,
          .b_map = map,
          .out_map = map,
          .alpha = alpha,
          .fill_value = fill_value};
}

inline Launch naive_launch(Operation operation, int64_t size, bool nested) {
  return {{.operation = operation, .threads = kThreads, .vectors = 1, .nested = nested},
          div_ceil(size, int64_t(kThreads))};
}

// Accesses a thread has in flight where there are many elements, the widest of `widest` bytes. A
// formula or a second input takes code and registers for each of a thread's elements, so there are
// at most 16: more of them would leave too few threads on an SM.
constexpr int most_vectors(Operation operation, int widest) {
  constexpr int kMany = 4, kElements = 16;
  const bool is_formula = operation >= Operation::exp && operation <= Operation::gelu_tanh;
  const bool is_wide = is_formula || num_inputs(operation) > 1;
  return is_wide ? std::min(kMany, kElements / (16 / widest)) : kMany;
}

// Few elements spread over all SMs rather than fill a thread.
inline Launch vectorized_launch(Operation operation, int64_t size, int widest, int num_sms,
                                bool single_a = false, bool single_b = false) {
  constexpr int kBlocksPerSm = 4;
  const int64_t per_vector = int64_t(16 / widest) * kThreads;
  const int many = most_vectors(operation, widest);
  const bool fills_device = size >= per_vector * many * kBlocksPerSm * num_sms;
  const Config config{.operation = operation,
                      .threads = kThreads,
                      .vectors = fills_device ? many : 1,
                      .single_a = single_a,
                      .single_b = single_b};
  return {config, div_ceil(size, per_vector * config.vectors)};
}

}  // namespace tensorcraft::kernel::elementwise
