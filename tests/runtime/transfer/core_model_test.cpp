// SPDX-License-Identifier: Apache-2.0
// Checks what holds after every step of a random history: of transfers, cancels, time, and a
// device, a stager and callers that move as they like.
#include "tensorcraft/runtime/transfer/core.hpp"

#include "tests/support/simulated_transfer.hpp"

#include <algorithm>
#include <string>

#include <rapidcheck.h>
#include <gtest/gtest.h>

namespace tensorcraft::transfer {
namespace {

using test::ManualStager;
using test::SimulatedCopyDevice;
using test::SimulatedDevice;
using Bytes = std::vector<unsigned char>;

constexpr size_t kSlot = 64;  // bytes; small ones are staged by whoever submits

struct Step {
  unsigned what, value;
};

class Model {
 public:
  explicit Model(int slots, int most, bool is_pinned) : most_(most) {
    Options options{.slot_bytes = kSlot,
                    .slots = slots,
                    .direct_bytes = 40,
                    .window_bytes = 100,
                    .inline_bytes = 16};
    for (LaneLimits& lane : options.lanes) lane.max_in_flight = most;
    options.limits(Direction::d2h).bytes_per_second = 1e9;
    auto device = std::make_unique<SimulatedCopyDevice>(sim_);
    device->is_pinned = is_pinned;
    auto stager = std::make_unique<ManualStager>();
    stager_ = stager.get();
    core_ = std::make_unique<Core>(std::move(device), std::move(stager), options);
  }

  void apply(const Step& step) {
    now_ += Time(step.value % 50);
    switch (step.what % 6) {
      case 0:
      case 1:
        submit(step.value);
        break;
      case 2:
        cancel(step.value);
        break;
      case 3:
        if (stager_->waiting()) stager_->run(step.value % stager_->waiting());
        break;
      case 4:
        sim_.step(random_);
        break;
      default:
        take(core_->pump(now_));
    }
    check();
  }
  // All that is left ends.
  void finish() {
    for (int i = 0; i < 10'000 && !core_->is_idle(); ++i) {
      now_ += Time(1000);
      while (stager_->waiting()) stager_->run();
      sim_.step(random_);
      take(core_->pump(now_));
    }
    take(core_->pump(now_));
    require(core_->is_idle(), "something hangs");
    for (const auto& one : all_) {
      require(one->ends == 1, "a transfer did not end once");
      require(one->watch.expired(), "memory is kept after the end");
    }
    check();
  }
  std::string problem;

 private:
  struct One {
    Core::Handle record;
    Bytes from, to;
    std::weak_ptr<int> watch;
    int ends = 0;
    bool was_cancelled = false;
  };

  void require(bool holds, std::string_view what) {
    if (!holds && problem.empty()) problem = what;
  }
  void submit(unsigned value) {
    auto one = std::make_unique<One>();
    const size_t bytes = value % 7 == 0 ? 0 : value * 37 % 400;
    one->from = Bytes(bytes, (unsigned char)(value % 255 + 1));
    one->to = Bytes(bytes, 0);
    auto keep = std::make_shared<int>(0);
    one->watch = keep;
    one->record = core_->submit({.to = one->to.data(),
                                 .from = one->from.data(),
                                 .bytes = bytes,
                                 .direction = Direction(value % 3),
                                 .priority = int(value / 3 % 3),
                                 .after = {SimulatedDevice::stream(1)},
                                 .keep = std::move(keep),
                                 .ahead = value % 5 == 0},
                                now_);
    all_.push_back(std::move(one));
  }
  void cancel(unsigned value) {
    if (all_.empty()) return;
    One& one = *all_[value % all_.size()];
    const bool had_ended = is_terminal(one.record->state);
    const bool cancelled = core_->cancel(one.record, now_);
    require(cancelled != had_ended, "cancel() of one that had ended, or none of one that had not");
    one.was_cancelled = one.was_cancelled || cancelled;
  }
  void take(const std::vector<Core::Ended>& ended) {
    for (const Core::Ended& end : ended)
      for (const auto& one : all_) {
        if (one->record != end.record) continue;
        ++one->ends;
        const State state = one->record->state;
        require(state == (one->was_cancelled ? State::cancelled : State::completed), "a wrong end");
        if (state == State::completed) require(one->to == one->from, "wrong bytes");
      }
  }
  void check() {
    size_t running[kDirections] = {}, ended = 0;
    for (const auto& one : all_) {
      const Record& r = *one->record;
      running[size_t(r.request.direction)] += r.state == State::running;
      ended += is_terminal(r.state);
      require(r.moved <= r.issued && r.issued <= r.request.bytes, "more was moved than begun");
      if (!is_terminal(r.state)) require(!one->watch.expired(), "memory went before the end");
      if (r.state == State::queued) require(r.issued == 0, "a queued one has begun");
    }
    uint64_t counted = 0;
    const Statistics now = core_->statistics(now_);
    for (size_t i = 0; i < kDirections; ++i) {
      require(running[i] <= size_t(most_), "more run than may");
      require(now[i].running == running[i], "the running are miscounted");
      counted += now[i].completed + now[i].failed + now[i].cancelled;
    }
    require(counted == ended, "the ends are miscounted");
    check_order();
  }
  // Nothing runs on a lane that a queued one goes before, if both were there at the last start.
  void check_order() {
    for (const auto& one : all_)
      for (const auto& other : all_) {
        const Record &a = *one->record, &b = *other->record;
        if (a.request.direction != b.request.direction || a.started == Time(0)) continue;
        const bool goes_first = b.request.priority > a.request.priority ||
                                (b.request.priority == a.request.priority && b.order < a.order);
        if (goes_first && b.state == State::queued)
          require(b.submitted >= a.started, "one started before another that goes first");
      }
  }

  const int most_;
  std::mt19937 random_{1};
  Time now_{1000};
  SimulatedDevice sim_;
  std::vector<std::unique_ptr<One>> all_;
  std::unique_ptr<Core> core_;
  ManualStager* stager_ = nullptr;
};

TEST(TransferModel, HoldsOnRandomHistories) {
  EXPECT_TRUE(rc::check([] {
    const auto values = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
        rc::gen::pair(rc::gen::inRange(0u, 6u), rc::gen::inRange(0u, 1000u)));
    Model model(*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4), *rc::gen::arbitrary<bool>());
    for (const auto& [what, value] : values) model.apply({what, value});
    model.finish();
    if (!model.problem.empty()) RC_FAIL(model.problem);
  }));
}

// Longer ones than a property's: a thousand steps each.
TEST(TransferModel, HoldsOnLongHistories) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Model model(1 + int(seed % 3), 1 + int(seed / 3 % 3), seed % 2 == 0);
    for (int i = 0; i < 300; ++i) model.apply({unsigned(random()), unsigned(random() % 1000)});
    model.finish();
    ASSERT_EQ(model.problem, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tensorcraft::transfer
