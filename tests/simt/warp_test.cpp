// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/warp.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::simt {
namespace {

std::string fault_of(unsigned threads, Body body) {
  try {
    launch({.name = "k", .block = {threads}}, body, nullptr);
  } catch (const Error& e) {
    return e.what();
  }
  return "no fault";
}

void shuffles(const void*) {
  const int lane = int(threadIdx.x % 32);
  EXPECT_EQ(__shfl_sync(kFullWarp, lane, 5), 5);
  EXPECT_EQ(__shfl_sync(kFullWarp, lane, 37), 5);
  EXPECT_EQ(__shfl_sync(kFullWarp, lane, 1, 8), lane / 8 * 8 + 1);
  EXPECT_EQ(__shfl_xor_sync(kFullWarp, lane, 3), lane ^ 3);
  EXPECT_EQ(__shfl_down_sync(kFullWarp, lane, 1u), lane == 31 ? 31 : lane + 1);
  EXPECT_EQ(__shfl_up_sync(kFullWarp, lane, 2u), lane < 2 ? lane : lane - 2);
  EXPECT_EQ(__shfl_xor_sync(kFullWarp, double(lane) + 0.5, 16), double(lane ^ 16) + 0.5);
  EXPECT_EQ(__ballot_sync(kFullWarp, lane % 3 == 0), 0x49249249u);
  EXPECT_TRUE(__any_sync(kFullWarp, lane == 17));
  EXPECT_FALSE(__all_sync(kFullWarp, lane != 17));
  EXPECT_EQ(warp_reduce_down(lane, Sum()) * (lane == 0), lane == 0 ? 496 : 0);
  EXPECT_EQ(warp_broadcast(lane, 9), 9);
}

TEST(SimtWarp, ShufflesAndVotesGiveWhatTheHardwareGives) {
  EXPECT_EQ(fault_of(128, shuffles), "no fault");
}

TEST(SimtWarp, LanesOfAMaskMeetWithoutTheOthers) {
  EXPECT_EQ(fault_of(32,
                     [](const void*) {
                       const unsigned half = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
                       const int first =
                           __shfl_sync(half, int(threadIdx.x), threadIdx.x < 16 ? 0 : 16);
                       EXPECT_EQ(first, threadIdx.x < 16 ? 0 : 16);
                     }),
            "no fault");
}

TEST(SimtWarp, DoesNotWaitForLanesThatExited) {
  EXPECT_EQ(fault_of(40,
                     [](const void*) {
                       if (threadIdx.x % 4 == 1) return;
                       __syncwarp();
                       EXPECT_EQ(__ballot_sync(kFullWarp, 1) & 2u, 0u);
                     }),
            "no fault");
}

TEST(SimtWarp, ReportsALaneOutsideItsMask) {
  EXPECT_NE(fault_of(32, [](const void*) { __syncwarp(1); })
                .find("thread (1, 0, 0): __syncwarp: lane 1 is not in its own mask 0x1"),
            std::string::npos);
}

TEST(SimtWarp, ReportsLanesInDifferentInstructions) {
  const std::string text = fault_of(32, [](const void*) {
    if (threadIdx.x < 4)
      __syncwarp();
    else
      __ballot_sync(kFullWarp, 1);
  });
  EXPECT_NE(text.find("divergent warp: this lane executes __ballot_sync while other lanes of mask "
                      "0xffffffff wait in __syncwarp (tests/simt/warp_test.cpp:"),
            std::string::npos)
      << text;
}

TEST(SimtWarp, ReportsAWholeWarpInstructionWithoutItsWarp) {
  static constexpr WarpInstruction kInstruction{"mma.test", true};
  const std::string text = fault_of(32, [](const void*) {
    if (threadIdx.x == 31) return;
    warp_collective(kInstruction, kFullWarp, nullptr, nullptr, SourceLine::current());
  });
  EXPECT_NE(text.find("mma.test needs its whole warp"), std::string::npos) << text;
}

}  // namespace
}  // namespace tensorcraft::simt
