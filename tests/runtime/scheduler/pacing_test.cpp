// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/core.hpp"

#include <deque>
#include <map>

#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(Pacing, WakesWhenTheShareAllowsTheNextTask) {
  // 500 bytes a microsecond; a window of 2 us holds 1000.
  Core core({.max_running = 8, .bytes_per_second = 1e9, .shares = {{0, 0.5}}, .window = 2us});
  const auto submit = [&](TaskId id, uint64_t bytes, Time now) {
    return core.step(Submit{{.id = id, .traffic_bytes = bytes}}, now);
  };
  EXPECT_EQ(submit(1, 600, 0us).wake, std::nullopt);
  EXPECT_EQ(submit(2, 800, 0us).wake, Time(800));  // 1400 bytes are two windows' worth less 800 ns
  EXPECT_EQ(submit(3, 100, 0us).wake, Time(800));  // fits, but does not pass
  EXPECT_TRUE(core.step(Tick{}, Time(799)).start.empty());
  const Actions open = core.step(Tick{}, Time(800));
  EXPECT_EQ(open.start, std::vector<TaskId>{2});
  EXPECT_EQ(open.wake, Time(1000));
}

TEST(Pacing, MakesRoomInAFullQueueAsTimePasses) {
  Core core({.max_running = 8,
             .max_pending = 1,
             .bytes_per_second = 1e9,
             .shares = {{0, 1.0}},
             .window = 1us});
  const auto verdict = [&](TaskId id, Time now) {
    return core.step(Submit{{.id = id, .traffic_bytes = 1000}}, now).admission.value().verdict;
  };
  EXPECT_EQ(verdict(1, 0us), Verdict::admit);
  EXPECT_EQ(verdict(2, 0us), Verdict::queue);
  EXPECT_EQ(verdict(3, 0us), Verdict::reject);
  EXPECT_EQ(verdict(4, 1us), Verdict::queue);  // the second one starts just then
}

TEST(Pacing, HoldsBackNeitherAnotherStreamNorATaskWithoutTraffic) {
  Core core({.max_running = 8, .bytes_per_second = 1e9, .shares = {{0, 0.5}, {1, 0.5}}});
  const auto started = [&](Task task) { return !core.step(Submit{task}, 0s).start.empty(); };
  EXPECT_TRUE(started({.id = 1, .traffic_bytes = 5'000'000}));
  EXPECT_FALSE(started({.id = 2, .traffic_bytes = 1}));
  EXPECT_TRUE(started({.id = 3, .stream = 1, .traffic_bytes = 1}));
  EXPECT_TRUE(started({.id = 4, .stream = 2, .traffic_bytes = 1'000'000'000}));  // has no share
  EXPECT_TRUE(started({.id = 5}));
}

// Two streams that always have work of uneven sizes: what each started over two seconds of the fake
// clock is its share of the bandwidth.
TEST(Pacing, StartsTheConfiguredShareInTheLongRun) {
  constexpr double kBytesPerSecond = 1e9;
  const std::map<int, double> shares = {{0, 0.7}, {1, 0.2}};
  Core core({.max_running = 4, .bytes_per_second = kBytesPerSecond, .shares = shares});
  std::map<int, double> moved;
  TaskId id = 0;
  std::deque<TaskId> started;
  std::optional<Time> wake;
  const auto step = [&](const Event& event, Time now) {
    const Actions actions = core.step(event, now);
    started.insert(started.end(), actions.start.begin(), actions.start.end());
    wake = actions.wake;
  };
  const auto submit = [&](int stream, Time now) {
    const uint64_t bytes = 20'000 + (++id * 7919) % 1'500'000;
    step(Submit{{.id = id, .stream = stream, .traffic_bytes = bytes}}, now);
  };
  submit(0, 0s);
  submit(1, 0s);
  for (Time now = 0s; now < 2s;) {
    if (started.empty()) {
      ASSERT_TRUE(wake && *wake > now);
      step(Tick{}, now = *wake);
      continue;
    }
    const Task task = core.status(started.front()).task;
    started.pop_front();
    moved[task.stream] += double(task.traffic_bytes);
    step(Completed{task.id}, now);
    step(Forget{task.id}, now);
    submit(task.stream, now);
  }
  for (const auto& [stream, share] : shares)
    EXPECT_NEAR(moved[stream] / (kBytesPerSecond * 2), share, 0.05 * share) << stream;
}

}  // namespace
}  // namespace tensorcraft::scheduler
