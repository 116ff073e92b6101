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

// Where there are many elements, the widest of `widest` bytes: accesses a thread has in flight. A
// second input takes registers for each of a thread's elements, so there are at most 16: more of
// them would leave too few threads on an SM. A formula takes code for each, which is compiled; of
// the blocks that were tried for them (README), those of 4 KiB come closest to a copy.
constexpr Config many_config(Operation operation, int widest) {
  constexpr int kMany = 4, kElements = 16;
  if (operation >= Operation::exp && operation <= Operation::gelu_tanh)
    return {.operation = operation, .threads = 128, .vectors = 2};
  const int vectors =
      num_inputs(operation) > 1 ? std::min(kMany, kElements / (16 / widest)) : kMany;
  return {.operation = operation, .threads = kThreads, .vectors = vectors};
}

// Few elements spread over all SMs rather than fill a thread.
inline Launch vectorized_launch(Operation operation, int64_t size, int widest, int num_sms,
                                bool single_a = false, bool single_b = false) {
  constexpr int kBlocksPerSm = 4;
  const auto of_block = [widest](const Config& c) {
    return int64_t(16 / widest) * c.threads * c.vectors;
  };
  Config config = many_config(operation, widest);
  if (size < of_block(config) * kBlocksPerSm * num_sms)
    config = {.operation = operation, .threads = kThreads, .vectors = 1};
  config.single_a = single_a;
  config.single_b = single_b;
  return {config, div_ceil(size, of_block(config))};
}

}  // namespace tensorcraft::kernel::elementwise
