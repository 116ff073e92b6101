// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/warp.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tests/wrappers/kernels/params.h"

// A lane takes one word x and gives one. Blocks have 64 threads.
namespace tensorcraft::test {

TC_DEVICE void shfl(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = __shfl_sync(kFullWarp, x, int(x & 63));
}
TC_DEVICE void shfl_width(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = __shfl_sync(kFullWarp, x, int(x & 31), 8);
}
TC_DEVICE void shfl_xor(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = __shfl_xor_sync(kFullWarp, x, 5);
}
TC_DEVICE void shfl_up(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = __shfl_up_sync(kFullWarp, x, 3u, 16);
}
TC_DEVICE void shfl_down(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = __shfl_down_sync(kFullWarp, x, 7u);
}
TC_DEVICE void ballot(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = __ballot_sync(kFullWarp, int(x & 1));
}
TC_DEVICE void any(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(__any_sync(kFullWarp, (x & 31) == 0));
}
TC_DEVICE void all(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(__all_sync(kFullWarp, (x & 31) != 0));
}
TC_DEVICE void redux_add(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(ptx::redux_sync_add_s32(int32_t(x)));
}
TC_DEVICE void redux_min_s32(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(ptx::redux_sync_min_s32(int32_t(x)));
}
TC_DEVICE void redux_max_s32(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(ptx::redux_sync_max_s32(int32_t(x)));
}
TC_DEVICE void redux_min_u32(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = ptx::redux_sync_min_u32(x);
}
TC_DEVICE void redux_max_u32(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = ptx::redux_sync_max_u32(x);
}
TC_DEVICE void redux_and(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = ptx::redux_sync_and_b32(x | 0xffff);
}
TC_DEVICE void redux_or(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = ptx::redux_sync_or_b32(x & 0xff00ff);
}
TC_DEVICE void redux_xor(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = ptx::redux_sync_xor_b32(x);
}
TC_DEVICE void elect(const Params& p) { block_out(p)[threadIdx.x] = uint32_t(ptx::elect_sync()); }
TC_DEVICE void elect_masked(const Params& p) {
  block_out(p)[threadIdx.x] = uint32_t(threadIdx.x % 32 >= 9 && ptx::elect_sync(0xfffffe00u));
}

// The lanes below 11 and the others by themselves.
inline constexpr unsigned kLowLanes = 0x7ffu;
TC_DEVICE uint32_t redux_of(uint32_t x, unsigned mask) {
  return uint32_t(ptx::redux_sync_add_s32(int32_t(x), mask)) ^
         uint32_t(ptx::redux_sync_min_s32(int32_t(x), mask)) * 3 ^
         uint32_t(ptx::redux_sync_max_s32(int32_t(x), mask)) * 5 ^
         ptx::redux_sync_min_u32(x, mask) * 7 ^ ptx::redux_sync_max_u32(x, mask) * 11 ^
         ptx::redux_sync_and_b32(x, mask) * 13 ^ ptx::redux_sync_or_b32(x, mask) * 17 ^
         ptx::redux_sync_xor_b32(x, mask) * 19;
}
TC_DEVICE void redux_masked(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  if (threadIdx.x % 32 < 11)
    block_out(p)[threadIdx.x] = redux_of(x, kLowLanes);
  else
    block_out(p)[threadIdx.x] = redux_of(x, ~kLowLanes);
}
TC_DEVICE uint32_t votes_of(uint32_t x, unsigned mask) {
  return __ballot_sync(mask, int(x & 1)) ^ uint32_t(__any_sync(mask, (x & 31) == 0)) << 30 ^
         uint32_t(__all_sync(mask, (x & 31) != 0)) << 31;
}
TC_DEVICE void vote_masked(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  if (threadIdx.x % 32 < 11)
    block_out(p)[threadIdx.x] = votes_of(x, kLowLanes);
  else
    block_out(p)[threadIdx.x] = votes_of(x, ~kLowLanes);
}

struct ReduceShared {
  BlockReduce<float> reduce;
};
// Small integers as floats: exact in every order.
TC_DEVICE void warp_sum_float(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(warp_sum(f));
}
TC_DEVICE void warp_max_float(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(warp_max(f));
}
TC_DEVICE void warp_reduce_group(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(warp_reduce<8>(f, Sum()));
}
TC_DEVICE void warp_reduce_down_first(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(warp_broadcast(warp_reduce_down(f, Sum())));
}
struct TwoWords {
  uint32_t first, second;
};
TC_DEVICE void warp_exchange_words(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const TwoWords other = warp_exchange(TwoWords{x, ~x}, 5);
  block_out(p)[threadIdx.x] = other.first - other.second;
}
TC_DEVICE void warp_broadcast_21(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(warp_broadcast(f, 21));
}
TC_DEVICE void block_sum_float(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] =
      bit_cast<uint32_t>(block_sum(static_shared<ReduceShared>().reduce, f));
}
TC_DEVICE void block_max_float(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  const float f = float(int(x % 2048) - 1024);
  block_out(p)[threadIdx.x] =
      bit_cast<uint32_t>(block_max(static_shared<ReduceShared>().reduce, f));
}
struct ReduceWordsShared {
  BlockReduce<uint32_t> reduce, once;
};
TC_DEVICE void block_sum_words(const Params& p) {
  auto& shared = static_shared<ReduceWordsShared>();
  const uint32_t x = block_in(p)[thread_rank()];
  block_out(p)[thread_rank()] = block_reduce(shared.reduce, x, Sum()) + uint32_t(block_threads()) +
                                2 * block_reduce_once(shared.once, x, Sum());
}
TC_DEVICE void warp_all_nonzero(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(warp_all((x & 31) != 0));
}
TC_DEVICE void warp_any_zero(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x];
  block_out(p)[threadIdx.x] = uint32_t(warp_any((x & 31) == 0));
}

}  // namespace tensorcraft::test
