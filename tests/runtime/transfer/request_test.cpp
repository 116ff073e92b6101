// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/request.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::transfer {
namespace {

TEST(TransferRequest, NamesAreThoseOfMessages) {
  EXPECT_EQ(to_string(Direction::h2d), "h2d");
  EXPECT_EQ(to_string(Direction::peer), "peer");
  EXPECT_EQ(to_string(State::queued), "queued");
  EXPECT_EQ(to_string(State::cancelled), "cancelled");
  EXPECT_FALSE(is_terminal(State::running));
  EXPECT_TRUE(is_terminal(State::failed));
}

TEST(TransferRequest, APieceIsAnEighthAtMostASlotAndNotTiny) {
  constexpr size_t kKiB = 1 << 10, kSlot = 4096 * kKiB;
  EXPECT_EQ(staged_piece_bytes(1, kSlot), 256 * kKiB);
  EXPECT_EQ(staged_piece_bytes(2048 * kKiB, kSlot), 256 * kKiB);
  EXPECT_EQ(staged_piece_bytes(2049 * kKiB, kSlot), 512 * kKiB);
  EXPECT_EQ(staged_piece_bytes(size_t(1) << 30, kSlot), kSlot);
  EXPECT_EQ(staged_piece_bytes(size_t(1) << 30, 1000), 1000u);
}

TEST(TransferRequest, SpeedIsOfTheTimeInWhichALaneWorked) {
  LaneStatistics lane;
  EXPECT_EQ(lane.gb_per_s(), 0);
  lane.bytes = 5000;
  lane.busy = Time(1000);
  EXPECT_EQ(lane.gb_per_s(), 5);
}

}  // namespace
}  // namespace tensorcraft::transfer
