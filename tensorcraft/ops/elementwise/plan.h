// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/row_plan.h"
#include "tensorcraft/ops/elementwise/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::elementwise {

using Choice = op::Choice<Config>;

// Facts of a call that Params do not hold.
struct Given {
  Operation operation;
  int widest;  // bytes of an element of the widest dtype
};

inline constexpr int kThreads = 256;

// `size` neighbours in every tensor; an operation with fewer than two inputs repeats the one
// before.
inline Params contiguous_params(const void* a, const void* b, void* out, int64_t size,
                                float alpha = 0, uint64_t fill_value = 0) {
  const RowMap map = op::contiguous_rows(size, 1);
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

inline Choice naive(const Params& p, const Given& given, const op::Gpu&) {
  const bool nested = p.a_map.axes > 1 || p.b_map.axes > 1 || p.out_map.axes > 1;
  return op::Start<Config>{
      {.operation = given.operation, .threads = kThreads, .vectors = 1, .nested = nested},
      div_ceil(p.size, int64_t(kThreads))};
}

// If there are many elements, the widest of `widest` bytes: accesses a thread has in flight. A
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

// Elements that a block takes in vectors of 16 bytes.
template <class SomeConfig>
constexpr int64_t block_elements(const SomeConfig& c, int widest) {
  return int64_t(16 / widest) * c.threads * c.vectors;
}

// Few elements spread over all SMs rather than fill a thread.
constexpr Config vector_config(Operation operation, int64_t size, int widest, int num_sms) {
  constexpr int kBlocksPerSm = 4;
  const Config many = many_config(operation, widest);
  if (size >= block_elements(many, widest) * kBlocksPerSm * num_sms) return many;
  return {.operation = operation, .threads = kThreads, .vectors = 1};
}

// One element that all of the output shares?
inline bool is_single(const Params& p, const RowMap& map) {
  return p.size > 1 && map.axes == 1 && map.stride[0] == 0;
}

// Contiguous elements, whole vectors of 16 bytes of the widest dtype, over and over?
inline bool repeats(const RowMap& map, int widest) {
  return map.axes == 2 && map.stride[0] == 0 && map.stride[1] == 1 &&
         period_of(map) % (16 / widest) == 0;
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu& gpu) {
  const auto [operation, widest] = given;
  const int inputs = num_inputs(operation);
  const void* const addresses[] = {p.out, p.a, p.b};
  const RowMap* const maps[] = {&p.out_map, &p.a_map, &p.b_map};
  for (int i = 0; i <= inputs; ++i) {
    if (i > 0 && is_single(p, *maps[i])) continue;
    const bool is_contiguous = maps[i]->axes == 1 && maps[i]->stride[0] == 1;
    if (p.size > 1 && !is_contiguous && (i == 0 || !repeats(*maps[i], widest)))
      return op::refuse(
          "every tensor must be contiguous, one element, or an input that repeats whole vectors");
    if (!op::is_vector_aligned(addresses[i]))
      return op::refuse("every address must be a multiple of 16");
  }
  Config config = vector_config(operation, p.size, widest, gpu.num_sms);
  config.single_a = inputs > 0 && is_single(p, p.a_map);
  config.single_b = inputs > 1 && is_single(p, p.b_map);
  config.repeats_a = inputs > 0 && repeats(p.a_map, widest);
  config.repeats_b = inputs > 1 && repeats(p.b_map, widest);
  return op::Start<Config>{config, div_ceil(p.size, block_elements(config, widest))};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "16-byte accesses, several in flight in each thread",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element, any strides",
     .choose = naive,
     .general = op::with_nested<Config>},
};

}  // namespace tensorcraft::kernel::elementwise
