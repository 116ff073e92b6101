// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/ptx/warp.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::simt {
namespace {

TEST(SimtVote, ReducesIntegersOfTheLanesInTheMask) {
  launch(
      {.name = "k", .block = {32}},
      [](const void*) {
        const int lane = int(threadIdx.x);
        EXPECT_EQ(ptx::redux_sync_add_s32(lane - 16), -16);
        EXPECT_EQ(ptx::redux_sync_min_s32(5 - lane), -26);
        EXPECT_EQ(ptx::redux_sync_max_s32(5 - lane), 5);
        EXPECT_EQ(ptx::redux_sync_min_u32(uint32_t(lane - 1)), 0u);
        EXPECT_EQ(ptx::redux_sync_max_u32(uint32_t(lane - 1)), 0xffffffffu);
        EXPECT_EQ(ptx::redux_sync_or_b32(1u << lane), 0xffffffffu);
        EXPECT_EQ(ptx::redux_sync_and_b32(~(1u << lane)), 0u);
        EXPECT_EQ(ptx::redux_sync_xor_b32(uint32_t(lane) | 32u), 0u);
        if (lane >= 24) {
          EXPECT_EQ(ptx::redux_sync_add_s32(lane, 0xff000000u), 220);
        }
      },
      nullptr);
}

TEST(SimtVote, ElectsTheLowestLane) {
  launch(
      {.name = "k", .block = {64}},
      [](const void*) {
        const unsigned lane = threadIdx.x % 32;
        EXPECT_EQ(ptx::elect_sync(), lane == 0);
        if (lane >= 5) {
          EXPECT_EQ(ptx::elect_sync(0xffffffe0u), lane == 5);
        }
      },
      nullptr);
}

}  // namespace
}  // namespace tensorcraft::simt
