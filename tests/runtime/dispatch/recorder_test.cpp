// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/dispatch/recorder.hpp"

#include "tensorcraft/cuda/launch_watcher.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

namespace tensorcraft::dispatch {
namespace {

using namespace std::chrono_literals;

Launch launch_of(uint64_t number) {
  return {.name = Launch::short_name("op" + std::to_string(number)),
          .grid = {uint32_t(number)},
          .device = Device::cuda(0),
          .task = number,
          .at = Time(int64_t(number))};
}

TEST(Recorder, KeepsTheLastThousandTheNewestFirst) {
  const auto recorder = std::make_unique<Recorder>();
  EXPECT_TRUE(recorder->last().empty());
  for (uint64_t i = 1; i <= 2500; ++i) recorder->note(launch_of(i));
  const auto last = recorder->last();
  ASSERT_EQ(last.size(), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(last[i].task, 2500 - i);
    EXPECT_EQ(std::string(last[i].name.data()), "op" + std::to_string(2500 - i));
  }
  EXPECT_EQ(recorder->last(3).size(), 3u);
  EXPECT_EQ(recorder->last(3)[2].task, 2498u);
}

TEST(Recorder, ReadersSeeWholeLaunchesWhateverIsWritten) {
  const auto recorder = std::make_unique<Recorder>();
  std::atomic<bool> stop = false;
  std::vector<std::jthread> writers;
  for (uint64_t t = 0; t < 3; ++t)
    writers.emplace_back([&, t] {
      for (uint64_t i = 1; !stop; ++i) recorder->note(launch_of(4 * i + t));
    });
  for (int round = 0; round < 200; ++round)
    for (const Launch& launch : recorder->last()) {
      ASSERT_EQ(std::string(launch.name.data()), "op" + std::to_string(launch.task));
      ASSERT_EQ(launch.grid.x, uint32_t(launch.task));
      ASSERT_EQ(launch.at.count(), int64_t(launch.task));
    }
  stop = true;
}

TEST(Recorder, CutsLongNames) {
  const std::string longest(100, 'x');
  EXPECT_EQ(std::string(Launch::short_name(longest).data()), std::string(39, 'x'));
}

TEST(Report, NamesKernelStreamTaskAndTime) {
  const int kernel = 0;
  cuda::name_kernel(&kernel, "block_row<float>");
  const Launch launch{.name = Launch::short_name("softmax"),
                      .kernel = &kernel,
                      .grid = {2, 3},
                      .block = {128},
                      .stream = reinterpret_cast<CUstream_st*>(0x40),
                      .device = Device::cuda(1),
                      .outcome = Outcome::failed,
                      .task = 7,
                      .at = 1ms};
  EXPECT_EQ(describe(launch, 3ms),
            "softmax (block_row<float>), failed, grid (2, 3, 1), block (128, 1, 1), on cuda:1, "
            "stream 0x40, task 7, 2000 us before");
}

TEST(Report, GivesAFewLinesAndTheFileThatHasAll) {
  EXPECT_EQ(report({}, 0ms), "");
  std::vector<Launch> launches;
  for (uint64_t i = 20; i > 0; --i) launches.push_back(launch_of(i));
  const std::string text = report(launches, 1ms);
  const std::string begin = "\nthe last launches, the newest first (all 20 in ";
  ASSERT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
  const std::string path = text.substr(begin.size(), text.find(')') - begin.size());
  std::ifstream file(path);
  std::string line;
  std::vector<std::string> lines;
  while (std::getline(file, line)) lines.push_back(line);
  ASSERT_EQ(lines.size(), 20u);
  EXPECT_EQ(lines[19], describe(launches[19], 1ms));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tensorcraft::dispatch
