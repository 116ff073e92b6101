// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/ptx/warp.cuh"
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/shared.cuh"

// One 128 x 128 tile of C = A B^T by one warpgroup that produces and consumes: TMA fills a ring of
// stages, wgmma reads it. A and B are bfloat16, 128 x 256 and k-major.
namespace tensorcraft::kernel::wgmma_tile {

constexpr int kM = 128, kN = 128, kK = 256, kBlockK = 64, kStages = 3, kThreads = 128;
constexpr int kSteps = kK / kBlockK;

struct Params {
  TensorMap a, b;  // boxes of 64 x 128 with the 128-byte swizzle
  float* c;        // 128 x 128, row-major
};

struct Shared {
  struct alignas(1024) Tile {
    uint16_t values[128 * kBlockK];
  };
  Tile a[kStages], b[kStages];
  uint64_t full[kStages], empty[kStages];
};
constexpr uint32_t kStageBytes = 2 * sizeof(Shared::Tile);
constexpr Wgmma kOp{.n = kN};

TC_DEVICE uint64_t k_major(const void* tile) {
  return wgmma_descriptor({.address = ptx::cvta_to_shared(tile),
                           .leading = 16,
                           .stride = 1024,
                           .swizzle = Swizzle::bytes_128});
}

// By one thread.
TC_DEVICE void load(const Params& p, Shared& s, int step) {
  const int stage = step % kStages;
  ptx::mbarrier_wait_parity(&s.empty[stage], uint32_t(step / kStages % 2) ^ 1);
  ptx::mbarrier_arrive_expect_tx(&s.full[stage], kStageBytes);
  const int32_t at[2] = {step * kBlockK, 0};
  ptx::tma_load(&s.a[stage], &p.a, at, &s.full[stage]);
  ptx::tma_load(&s.b[stage], &p.b, at, &s.full[stage]);
}

TC_DEVICE void multiply(Shared& s, int stage, float (&low)[kN / 2], float (&high)[kN / 2],
                        bool first) {
  const uint64_t a = k_major(&s.a[stage]), b = k_major(&s.b[stage]);
  constexpr uint64_t second_half = 64 * kBlockK * 2 / 16, along_k = 32 / 16;
  ptx::wgmma_fence();
  for (int k = 0; k < kBlockK / 16; ++k) {
    const uint64_t step = uint64_t(k) * along_k;
    ptx::wgmma_mma_async<kOp>(low, a + step, b + step, !first || k > 0);
    ptx::wgmma_mma_async<kOp>(high, a + second_half + step, b + step, !first || k > 0);
  }
  ptx::wgmma_commit_group();
}

TC_DEVICE void store(const Params& p, const float (&d)[kN / 2], int first_row) {
  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) {
    const int row = first_row + 16 * warp + lane / 4 + (i % 4 / 2) * 8;
    const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    p.c[row * kN + column] = d[i];
  }
}

TC_DEVICE void run(const Params& p) {
  Shared& s = dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&s.full[i], 1);
      ptx::mbarrier_init(&s.empty[i], kThreads / 32);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const bool loads = threadIdx.x < 32 && ptx::elect_sync();
  if (loads)
    for (int step = 0; step < kStages - 1; ++step) load(p, s, step);
  __syncwarp();

  float low[kN / 2], high[kN / 2];
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) {
    const int stage = step % kStages;
    ptx::mbarrier_wait_parity(&s.full[stage], uint32_t(step / kStages % 2));
    multiply(s, stage, low, high, step == 0);
    ptx::wgmma_wait_group<1>();
    // All but the newest product are done, so the stage before this one is free.
    if (step > 0 && ptx::elect_sync()) ptx::mbarrier_arrive(&s.empty[(step - 1) % kStages]);
    if (loads && step + kStages - 1 < kSteps) load(p, s, step + kStages - 1);
    __syncwarp();
  }
  ptx::wgmma_wait_group<0>();
  store(p, low, 0);
  store(p, high, 64);
}

}  // namespace tensorcraft::kernel::wgmma_tile
