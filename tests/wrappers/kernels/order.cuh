// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/control.cuh"
#include "tensorcraft/device/ptx/memory_order.cuh"
#include "tests/wrappers/kernels/params.h"

// What orders blocks and launches, and what a warpgroup does to its registers.
namespace tensorcraft::test {

inline constexpr int kOrderBlocks = 4;
inline constexpr uint32_t kFilled = 0xddddddddu;  // a word of `out` before the first launch

// Block 0 writes words and a flag; the others wait for the flag and read them. The blocks of a
// cluster run at one time. out: the flag, three words of nothing, the words, what the others read.
TC_DEVICE void release_acquire(const Params& p) {
  uint32_t* out = cluster_out<kOrderBlocks>(p);
  const uint32_t rank = ptx::cluster_ctarank(), lane = threadIdx.x;
  uint32_t* const words = out + 4;
  if (rank == 0) {
    words[lane] = cluster_in<kOrderBlocks>(p)[lane];
    __syncthreads();
    if (lane == 0) ptx::st_release_gpu_u32(out, 1);
    return;
  }
  if (lane == 0)
    while (ptx::ld_acquire_gpu_u32(out) != 1) ptx::nanosleep(20);
  __syncthreads();
  words[rank * 32 + lane] = words[31 - lane] + rank;
}

// Every thread of the others writes a word and adds to a counter; block 0 waits for all. out: the
// counter, three words of nothing, the words, what block 0 read.
TC_DEVICE void red_release(const Params& p) {
  uint32_t* out = cluster_out<kOrderBlocks>(p);
  const uint32_t rank = ptx::cluster_ctarank(), lane = threadIdx.x;
  constexpr int kWords = (kOrderBlocks - 1) * 32;
  uint32_t* const words = out + 4;
  if (rank > 0) {
    const uint32_t i = (rank - 1) * 32 + lane;
    words[i] = cluster_in<kOrderBlocks>(p)[i];
    ptx::red_release_gpu_add_u32(out, i + 1);
    return;
  }
  if (lane == 0)
    while (ptx::ld_acquire_gpu_u32(out) != kFilled + kWords * (kWords + 1) / 2) ptx::nanosleep(20);
  __syncthreads();
  for (uint32_t i = lane; i < kWords; i += 32) words[kWords + i] = words[kWords - 1 - i] + 1;
}

// Each launch changes what the one before has written, and may begin before that ends. Its pause
// is long enough that a launch that does not wait reads old words.
TC_DEVICE void dependent_launches(const Params& p) {
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const uint32_t old = block_out(p)[threadIdx.x];
  ptx::nanosleep(20000);
  block_out(p)[threadIdx.x] = old * 5 + block_in(p)[threadIdx.x];
}

// One warpgroup gives registers to two others.
inline constexpr int kRegisterThreads = 384, kHeldWords = 96;
TC_DEVICE void setmaxnreg(const Params& p) {
  uint32_t x = block_in(p)[threadIdx.x];
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec<40>();
    x += 1;
  } else {
    ptx::setmaxnreg_inc<232>();
    uint32_t held[kHeldWords];
    for (int i = 0; i < kHeldWords; ++i) held[i] = x = x * 1664525u + 1013904223u;
    for (int i = 0; i < kHeldWords; ++i) x = x * 31 + held[kHeldWords - 1 - i];
  }
  block_out(p)[threadIdx.x] = x;
}

}  // namespace tensorcraft::test
