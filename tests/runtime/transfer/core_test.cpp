// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/core.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/simulated_transfer.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace tensorcraft::transfer {
namespace {

using namespace std::chrono_literals;
using test::ManualStager;
using test::SimulatedCopyDevice;
using test::SimulatedDevice;
using Bytes = std::vector<unsigned char>;

constexpr size_t kPiece = 256 << 10;

// A core whose device and stager move when the test says so.
class CoreTest : public testing::Test {
 protected:
  void make(Options options = {}) {
    options.slot_bytes = options.direct_bytes = kPiece;
    options.window_bytes = 2 * kPiece;
    options.slots = slots_;
    auto device = std::make_unique<SimulatedCopyDevice>(sim_);
    device_ = device.get();
    auto stager = std::make_unique<ManualStager>();
    stager_ = stager.get();
    core_ = std::make_unique<Core>(std::move(device), std::move(stager), options);
  }
  Core::Handle submit(size_t bytes, int priority = 0, Direction direction = Direction::h2d,
                      std::vector<StreamRef> after = {}) {
    const Bytes& from = sources_.emplace_back(bytes, (unsigned char)(sources_.size() + 1));
    Bytes& to = targets_.emplace_back(bytes, 0);
    const Core::Handle made = core_->submit({.to = to.data(),
                                             .from = from.data(),
                                             .bytes = bytes,
                                             .direction = direction,
                                             .priority = priority,
                                             .after = std::move(after)},
                                            now_);
    made_.push_back(made);
    return made;
  }
  void pump() {
    for (const Core::Ended& one : core_->pump(now_))
      for (size_t i = 0; i < made_.size(); ++i)
        if (made_[i] == one.record) order_ += std::to_string(i);
  }
  bool is_right(size_t i) const { return targets_[i] == sources_[i]; }
  // All that the stager holds, then all that the device holds.
  void move() {
    while (stager_->waiting()) stager_->run();
    pump();
    sim_.run_all();
    pump();
  }
  void finish() {
    for (int i = 0; i < 1000 && !core_->is_idle(); ++i) move();
    EXPECT_TRUE(core_->is_idle());
  }

  int slots_ = 2;
  Time now_ = 1ms;
  SimulatedDevice sim_;
  std::deque<Bytes> sources_, targets_;
  std::vector<Core::Handle> made_;
  std::string order_;  // of the ends
  std::unique_ptr<Core> core_;
  SimulatedCopyDevice* device_ = nullptr;
  ManualStager* stager_ = nullptr;
};

TEST_F(CoreTest, PriorityGoesFirstThenOrder) {
  Options options;
  options.limits(Direction::h2d).max_in_flight = 1;
  make(options);
  for (const int priority : {0, 0, 5, -1, 5, 0}) submit(kPiece, priority);
  pump();  // nothing had begun before: the highest is first
  finish();
  EXPECT_EQ(order_, "240153");
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(is_right(i)) << i;
}

TEST_F(CoreTest, PiecesOfAHigherPriorityGoBeforeTheRestOfALower) {
  make();
  submit(8 * kPiece);
  pump();
  submit(2 * kPiece, 1);
  finish();
  EXPECT_EQ(order_, "10");
}

TEST_F(CoreTest, OfEachDirectionNoMoreRunThanItsLimit) {
  Options options;
  options.limits(Direction::h2d).max_in_flight = 2;
  options.limits(Direction::d2h).max_in_flight = 1;
  make(options);
  for (int i = 0; i < 5; ++i) {
    submit(kPiece);
    submit(kPiece, 0, Direction::d2h);
  }
  pump();
  const Statistics now = core_->statistics(now_);
  EXPECT_EQ(now[size_t(Direction::h2d)].running, 2u);
  EXPECT_EQ(now[size_t(Direction::h2d)].queued, 3u);
  EXPECT_EQ(now[size_t(Direction::d2h)].running, 1u);
  EXPECT_EQ(now[size_t(Direction::d2h)].queued, 4u);
  finish();
  EXPECT_EQ(core_->statistics(now_)[size_t(Direction::d2h)].completed, 5u);
}

TEST_F(CoreTest, r12_cancel_frees_slot) {
  Options options;
  options.limits(Direction::h2d).max_in_flight = 1;
  make(options);
  const auto first = submit(kPiece), second = submit(kPiece), third = submit(kPiece);
  pump();
  EXPECT_TRUE(core_->cancel(second, now_));
  EXPECT_EQ(second->state, State::cancelled);
  EXPECT_FALSE(core_->cancel(second, now_));
  EXPECT_TRUE(core_->cancel(first, now_));
  EXPECT_EQ(first->state, State::running);  // its piece is in the stager
  finish();
  EXPECT_EQ(first->state, State::cancelled);
  EXPECT_EQ(third->state, State::completed);
  EXPECT_TRUE(is_right(2));
  EXPECT_EQ(order_, "102");
}

TEST_F(CoreTest, NoPieceOfACancelledOneBegins) {
  make();
  const auto record = submit(10 * kPiece);
  pump();
  EXPECT_EQ(stager_->waiting(), 2u);
  core_->cancel(record, now_);
  move();
  EXPECT_EQ(record->state, State::cancelled);
  EXPECT_EQ(record->issued, 2 * record->piece_bytes);
  EXPECT_EQ(targets_[0], Bytes(10 * kPiece, 0));  // what was staged was not copied
}

TEST_F(CoreTest, FillsSlotsWhileOthersAreCopied) {
  make();
  submit(6 * kPiece);
  pump();
  EXPECT_EQ(stager_->waiting(), 2u);
  stager_->run(1);  // in any order
  pump();
  EXPECT_EQ(stager_->waiting(), 1u);
  EXPECT_TRUE(core_->has_copies());  // one slot is copied while another is filled
  stager_->run();
  pump();
  EXPECT_EQ(stager_->waiting(), 0u);  // both slots are on the lane
  sim_.run_all();
  pump();
  EXPECT_EQ(stager_->waiting(), 2u);
  finish();
  EXPECT_TRUE(is_right(0));
}

TEST_F(CoreTest, OneSlotIsEnough) {
  slots_ = 1;
  make();
  submit(20 * kPiece + 7);
  submit(20 * kPiece + 7, 0, Direction::d2h);
  finish();
  EXPECT_TRUE(is_right(0));
  EXPECT_TRUE(is_right(1));
}

TEST_F(CoreTest, SmallPiecesNeedNoThread) {
  make();
  submit(1000);
  submit(1000, 0, Direction::d2h);
  pump();
  EXPECT_EQ(stager_->waiting(), 0u);
  EXPECT_TRUE(core_->has_copies());
  EXPECT_TRUE(made_[0]->is_enqueued());
  sim_.run_all();
  pump();
  EXPECT_EQ(stager_->waiting(), 0u);
  EXPECT_EQ(order_, "01");
}

TEST_F(CoreTest, AFewPiecesOfWhatNeedsNoStagingAreAheadUnlessAllAreWanted) {
  make();
  device_->is_pinned = true;
  const auto record = submit(10 * kPiece);
  pump();
  EXPECT_EQ(record->issued, 2 * kPiece);
  EXPECT_FALSE(record->is_enqueued());
  Bytes to(10 * kPiece), from(10 * kPiece, 9);
  const auto ahead = core_->submit({.to = to.data(),
                                    .from = from.data(),
                                    .bytes = from.size(),
                                    .direction = Direction::d2h,
                                    .ahead = true},
                                   now_);
  pump();
  EXPECT_TRUE(ahead->is_enqueued());
  EXPECT_NE(ahead->copied, nullptr);
  finish();
  EXPECT_EQ(to, from);
  EXPECT_TRUE(is_right(0));
}

TEST_F(CoreTest, ComesAfterTheStreamsItWasGiven) {
  make();
  device_->is_pinned = true;
  const StreamRef one = SimulatedDevice::stream(1), two = SimulatedDevice::stream(2);
  std::string seen;
  sim_.enqueue(one, [&] { seen += "1"; });
  sim_.enqueue(two, [&] { seen += "2"; });
  submit(kPiece, 0, Direction::d2d, {one, two});
  pump();
  sim_.run(SimulatedCopyDevice::stream_of(Direction::d2d));
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(is_right(0));
  finish();
}

TEST_F(CoreTest, ALimitOfBandwidthIsKept) {
  Options options;
  options.limits(Direction::h2d).bytes_per_second = double(kPiece) * 1000;  // a piece each ms
  make(options);
  device_->is_pinned = true;
  submit(5 * kPiece);
  pump();
  EXPECT_EQ(made_[0]->issued, kPiece);
  EXPECT_EQ(core_->wake(), now_ + 1ms);
  sim_.run_all();
  pump();
  EXPECT_EQ(made_[0]->issued, kPiece);  // the lane is free and the limit is not
  for (size_t pieces = 2; pieces <= 5; ++pieces) {
    now_ += 1ms;
    pump();
    EXPECT_EQ(made_[0]->issued, pieces * kPiece);
    sim_.run_all();
  }
  pump();
  EXPECT_EQ(order_, "0");
  const LaneStatistics lane = core_->statistics(now_)[0];
  EXPECT_EQ(lane.bytes, 5 * kPiece);
  EXPECT_EQ(lane.busy, 4ms);
}

TEST_F(CoreTest, LetsGoOfMemoryOnlyWhenNoCopyCanTouchIt) {
  make();
  device_->is_pinned = true;
  auto owner = std::make_shared<Bytes>(4 * kPiece, 7);
  const std::weak_ptr<Bytes> watch = owner;
  Bytes to(4 * kPiece);
  const auto record = core_->submit({.to = to.data(),
                                     .from = owner->data(),
                                     .bytes = to.size(),
                                     .direction = Direction::d2d,
                                     .keep = std::exchange(owner, nullptr)},
                                    now_);
  pump();
  core_->cancel(record, now_);
  pump();
  EXPECT_FALSE(watch.expired());  // two pieces are on the lane
  sim_.run_all();
  EXPECT_FALSE(watch.expired());
  pump();
  EXPECT_TRUE(watch.expired());
}

TEST_F(CoreTest, OneThatFailsMakesRoomForTheNext) {
  Options options;
  options.limits(Direction::h2d).max_in_flight = 1;
  make(options);
  device_->is_pinned = true;
  submit(kPiece);
  submit(kPiece);
  sim_.fail_at(2);  // the copy, after the mark was made
  pump();
  EXPECT_EQ(made_[0]->state, State::failed);
  EXPECT_EQ(made_[1]->state, State::running);
  finish();
  EXPECT_TRUE(is_right(1));
}

// Each transfer ends with its bytes, or with the error; nothing hangs and nothing is lost.
TEST_F(CoreTest, ADeviceThatRefusesAnyCallIsAnErrorOrNoMatter) {
  long failed = 0;
  for (long n = 1; n <= 60; ++n)
    for (const long every : {0, 7}) {
      make();
      made_.clear();
      sources_.clear();
      targets_.clear();
      const StreamRef stream = SimulatedDevice::stream(1);
      sim_.fail_at(n, every);
      for (const Direction direction : {Direction::h2d, Direction::d2h, Direction::d2d}) try {
          submit(4 * kPiece + 3, 0, direction, {stream});
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::internal);
          sources_.pop_back();
          targets_.pop_back();
        }
      finish();
      sim_.fail_at(0);
      for (size_t i = 0; i < made_.size(); ++i) {
        ASSERT_TRUE(is_terminal(made_[i]->state));
        if (made_[i]->state == State::completed)
          EXPECT_TRUE(is_right(i)) << n;
        else
          EXPECT_NE(made_[i]->error, nullptr) << n;
        failed += made_[i]->state == State::failed;
      }
    }
  EXPECT_GT(failed, 50);
  EXPECT_EQ(sim_.damage, "");
}

TEST_F(CoreTest, ALostDeviceFailsAllThatIsThere) {
  make();
  for (int i = 0; i < 20; ++i) submit(3 * kPiece, 0, Direction(i % 3));
  pump();
  while (stager_->waiting()) stager_->run();
  pump();
  device_->is_lost = true;
  sim_.fail_at(1, 1);
  for (int i = 0; i < 100 && !core_->is_idle(); ++i) {
    while (stager_->waiting()) stager_->run();
    pump();
  }
  EXPECT_TRUE(core_->is_idle());
  sim_.fail_at(0);
  for (const auto& record : made_) EXPECT_EQ(record->state, State::failed);
}

TEST(TransferOptions, ThatMoveNothingAreRefused) {
  SimulatedDevice sim;
  const auto make = [&](const Options& options) {
    Core(std::make_unique<SimulatedCopyDevice>(sim), std::make_unique<ManualStager>(), options);
  };
  Options none;
  none.limits(Direction::d2d).max_in_flight = 0;
  test::expect_error(
      ErrorKind::value, [&] { make(none); },
      "TransferEngine: max_in_flight of d2d must be at least 1, got 0");
  Options negative;
  negative.limits(Direction::peer).bytes_per_second = -1;
  test::expect_error(
      ErrorKind::value, [&] { make(negative); },
      "TransferEngine: the bandwidth of peer must be 0 (no limit) or more bytes a "
      "second, got -1");
  test::expect_error_with(ErrorKind::value, "got 0 slots", [&] { make({.slots = 0}); });
}

}  // namespace
}  // namespace tensorcraft::transfer
