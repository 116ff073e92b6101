// SPDX-License-Identifier: Apache-2.0
#pragma once
// How states meet: across the threads of a group, and across the blocks that share an output. The
// order is fixed, so results repeat to the bit.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/reduce/reducer.cuh"

namespace tensorcraft::kernel::reduce {

template <class State>
TC_DEVICE State shuffle_xor(const State& s, int lanes) {
  static_assert(sizeof(State) % sizeof(uint32_t) == 0);
  struct Words {
    uint32_t words[sizeof(State) / sizeof(uint32_t)];
  };
  Words w = bit_cast<Words>(s);
  for (uint32_t& word : w.words) word = __shfl_xor_sync(kFullWarp, word, lanes);
  return bit_cast<State>(w);
}

template <class State>
struct GroupShared {
  State parts[kMaxWarps];
};

// The first thread of each group has the result. All threads of the block call; a group larger than
// a warp is the block.
template <class R, Config C>
TC_DEVICE typename R::State combine_group(GroupShared<typename R::State>& shared,
                                          typename R::State s) {
  constexpr int kLanes = C.group < kWarpSize ? C.group : kWarpSize;
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) s = R::combine(s, shuffle_xor(s, lanes));
  if constexpr (C.group > kWarpSize) {
    if (threadIdx.x % kWarpSize == 0) shared.parts[threadIdx.x / kWarpSize] = s;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int warp = 1; warp < C.threads / kWarpSize; ++warp)
        s = R::combine(s, shared.parts[warp]);
  }
  return s;
}

// Which block of those that share outputs alike this one is, and which of those outputs it has.
struct Part {
  uint32_t outputs, split;
};
// Found anew at the end of a kernel, as a shuffle is not remembered: kept in registers, it would
// cost loads in flight. All threads of the block call.
template <Config C>
TC_DEVICE Part part_of_block(const Params& p) {
  const auto block = warp_broadcast(uint32_t(blockIdx.x));
  if constexpr (C.shared == 0) return {block, 0};
  const uint32_t outputs = p.by_splits.quotient(block);
  return {outputs, block - outputs * p.by_splits.divisor};
}

// What a block found of an output: all of it, or a part that Combine will read.
template <class R, Config C>
TC_DEVICE void finish(const RowParams<Params, C>& p, int64_t row, int64_t column, uint32_t split,
                      const typename R::State& s) {
  using State = typename R::State;
  if (C.shared != 0 && p.splits > 1)
    static_cast<State*>(p.workspace)[(split * p.rows + row) * p.inner + column] = s;
  else
    store<C.operation, R>(p, row_offset(p, Params::kOut, row) + column * p.out_inner, s);
}

}  // namespace tensorcraft::kernel::reduce
