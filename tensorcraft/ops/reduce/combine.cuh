// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second launch if blocks share outputs: C.group threads join the parts of one, always in
// the same order. It may start while the first still runs, which hides the launch, and waits for
// its end: no counter must be cleared before, and no block waits for another's atomics.
#include "tensorcraft/ops/reduce/partial.cuh"

namespace tensorcraft::kernel::reduce {

inline constexpr int kPartsAtOnce = 8;  // parts that a thread reads at once

struct Combine {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using R = Reducer<T, C.operation>;
    using State = typename R::State;
    auto& shared = static_shared<GroupShared<State>>();
    // The outputs are those of blocks that do not fill the GPU, so 32 bits count them.
    const auto inner = uint32_t(p.inner), outputs = uint32_t(p.rows) * inner;
    const auto splits = uint32_t(p.splits);
    const uint32_t output = blockIdx.x * (C.threads / C.group) + threadIdx.x / C.group;
    const State* const parts = static_cast<const State*>(p.workspace) + output;
    State s = R::identity();
    for (uint32_t first = threadIdx.x % C.group; first < splits; first += C.group * kPartsAtOnce) {
      State some[kPartsAtOnce];
#pragma unroll
      for (int i = 0; i < kPartsAtOnce; ++i) {
        const uint32_t split = first + i * C.group;
        some[i] = R::identity();
        if (output < outputs && split < splits) some[i] = parts[int64_t(split) * outputs];
      }
      for (const State& one : some) s = R::combine(s, one);
    }
    s = combine_group<R, C>(shared, s);
    if (threadIdx.x % C.group == 0 && output < outputs) {
      const uint32_t row = p.by_inner.quotient(output), column = output - row * inner;
      store<C.operation, R>(p, row_offset(p, Params::kOut, row) + column * p.out_inner, s);
    }
  }
};

}  // namespace tensorcraft::kernel::reduce
