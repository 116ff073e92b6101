// SPDX-License-Identifier: Apache-2.0
#pragma once
// How states meet: across the threads of a group, and across the blocks that share an output. The
// order is fixed, so results repeat to the bit.
#include "tensorcraft/device/atomic.cuh"
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
  int is_last;
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

// Is this block the last of those that share tile `tile` of the output? Then it sees what all of
// them wrote before they came here. Which block that is does not matter: it reads every part.
TC_DEVICE bool is_last_of(const Params& p, int64_t tile, int& shared) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    shared = atomic_add(static_cast<uint32_t*>(p.workspace) + tile, 1u) + 1 == uint32_t(p.splits);
  __syncthreads();
  __threadfence();
  return shared != 0;
}

template <class State>
TC_DEVICE State* partial_states(const Params& p) {
  return reinterpret_cast<State*>(static_cast<uint8_t*>(p.workspace) + p.states);
}

}  // namespace tensorcraft::kernel::reduce
