// SPDX-License-Identifier: Apache-2.0
// When a warpgroup's product takes effect; what it computes is in wgmma_math_test.
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tests/simt/kernels.hpp"

namespace tensorcraft::simt {
namespace {

using tensorcraft::dynamic_shared;

// A 64 x 16 and B 16 x 8 of bfloat16 without a swizzle: 8 x 16-byte pieces.
struct Shared {
  alignas(1024) uint16_t a[64 * 16], b[8 * 16];
};
constexpr Wgmma kOp{.n = 8};
constexpr uint16_t kOne = 0x3f80;
constexpr Launch kLaunch{.name = "k", .block = {128}, .shared_bytes = sizeof(Shared)};

Shared& shared() { return dynamic_shared<Shared>(); }
uint64_t a_descriptor() {
  return wgmma_descriptor(
      {.address = ptx::cvta_to_shared(shared().a), .leading = 128, .stride = 256});
}
uint64_t b_descriptor() {
  return wgmma_descriptor(
      {.address = ptx::cvta_to_shared(shared().b), .leading = 128, .stride = 256});
}
// Ones everywhere: each product adds 16.
void fill() {
  for (unsigned i = threadIdx.x; i < 64 * 16; i += 128) shared().a[i] = kOne;
  shared().b[threadIdx.x] = kOne;
  ptx::fence_proxy_async();
  __syncthreads();
}
void product(float (&d)[4], bool accumulate = true) {
  ptx::wgmma_mma_async<kOp>(d, a_descriptor(), b_descriptor(), accumulate);
}

void chain(const void* p) {
  fill();
  float d[4], e[4] = {1, 2, 3, 4};
  ptx::wgmma_fence();
  product(d, false);
  product(d);
  ptx::wgmma_commit_group();
  const uint32_t ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
  ptx::wgmma_mma_async<kOp>(e, ones, b_descriptor(), true);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<1>();
  float* const out = *static_cast<float* const*>(p);
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 8 + unsigned(i)] = d[i];
  ptx::wgmma_wait_group<0>();
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 8 + 4 + unsigned(i)] = e[i];
}

TEST(SimtWgmma, GivesItsResultsAtTheWaitThatCoversThem) {
  for (const Options& o : timings()) {
    std::vector<float> out(128 * 8);
    float* data = out.data();
    run(kLaunch, chain, &data, o);
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], i % 8 < 4 ? 32.0f : 16.0f + float(i % 4 + 1));
  }
}

std::string text(Body body, const Options& o = {}) { return fault_of(kLaunch, body, nullptr, o); }

TEST(SimtWgmma, ShowsNanBeforeTheWait) {
  EXPECT_EQ(text([](const void*) {
              fill();
              float d[4];
              ptx::wgmma_fence();
              product(d, false);
              EXPECT_NE(d[0], d[0]);
              // Not committed, so the wait does not cover it.
              ptx::wgmma_wait_group<0>();
              EXPECT_NE(d[0], d[0]);
              ptx::wgmma_commit_group();
              ptx::wgmma_wait_group<1>();
              EXPECT_NE(d[0], d[0]);
              ptx::wgmma_wait_group<0>();
              EXPECT_EQ(d[0], 16.0f);
            }),
            "no fault");
}

TEST(SimtWgmma, ReportsAMissingFenceAtEveryTiming) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  for (const Options& o : timings(2)) {
    expect_fault(text(
                     [](const void*) {
                       fill();
                       float d[4];
                       product(d, false);
                     },
                     o),
                 "wgmma.mma_async: no wgmma.fence since the threads last held the registers of D");
    expect_fault(text(
                     [](const void*) {
                       fill();
                       float d[4];
                       ptx::wgmma_fence();
                       product(d, false);
                       ptx::wgmma_commit_group();
                       ptx::wgmma_wait_group<0>();
                       product(d);
                     },
                     o),
                 "no wgmma.fence");
    expect_fault(text(
                     [](const void*) {
                       shared().b[threadIdx.x] = kOne;
                       __syncthreads();
                       float d[4];
                       ptx::wgmma_fence();
                       product(d, false);
                     },
                     o),
                 "without a fence.proxy.async after it");
  }
}

TEST(SimtWgmma, ReportsRegistersAndOperandsThatChangeUnderWay) {
  if (kRaceBuild) GTEST_SKIP() << kSooner;
  expect_fault(text([](const void*) {
                 fill();
                 float d[4];
                 ptx::wgmma_fence();
                 product(d, false);
                 ptx::wgmma_commit_group();
                 if (threadIdx.x == 37) d[2] = 1;
                 ptx::wgmma_wait_group<0>();
               }),
               "thread (37, 0, 0): wgmma.mma_async: an accumulator register was written between");
  expect_fault(text([](const void*) {
                 fill();
                 float d[4];
                 ptx::wgmma_fence();
                 product(d, false);
                 ptx::wgmma_commit_group();
                 shared().a[threadIdx.x] = 0;
                 ptx::wgmma_wait_group<0>();
               }),
               "of shared memory changed between the issue and wgmma.wait_group");
  // No barrier between what one warp writes and what another warp's instruction reads.
  expect_fault(text([](const void*) {
                 fill();
                 if (threadIdx.x >= 96) {
                   for (int i = 0; i < 5; ++i) __syncwarp();
                   shared().a[threadIdx.x] = 0;
                   ptx::fence_proxy_async();
                 }
                 float d[4];
                 ptx::wgmma_fence();
                 product(d, false);
                 ptx::wgmma_commit_group();
                 ptx::wgmma_wait_group<0>();
               }),
               "of shared memory changed between");
}

TEST(SimtWgmma, ReportsWarpsThatDoNotExecuteTheSame) {
  expect_fault(text([](const void*) {
                 fill();
                 float d[4];
                 ptx::wgmma_fence();
                 product(d, threadIdx.x < 64);
                 ptx::wgmma_wait_group<0>();
               }),
               "this warp executes wgmma.mma_async where another of its warpgroup executes "
               "wgmma.mma_async with other operands");
  expect_fault(text([](const void*) {
                 if (threadIdx.x < 96) ptx::wgmma_wait_group<0>();
               }),
               "wgmma.wait_group, which all four warps execute");
  expect_fault(fault_of({.block = {96}}, [](const void*) { ptx::wgmma_fence(); }),
               "wgmma.fence: needs a whole warpgroup of 4 warps");
  expect_fault(text([](const void*) {
                 fill();
                 float d[4];
                 ptx::wgmma_fence();
                 product(d, false);
               }),
               "the thread exits before wgmma.wait_group covers it");
  expect_fault(text([](const void*) {
                 fill();
                 float d[4];
                 ptx::wgmma_fence();
                 ptx::wgmma_mma_async<kOp>(d, a_descriptor() + 1000, b_descriptor(), false);
               }),
               "an operand's descriptor leads to byte");
}

}  // namespace
}  // namespace tensorcraft::simt
