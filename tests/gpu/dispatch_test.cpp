// SPDX-License-Identifier: Apache-2.0
// Watched launches on a real GPU: what they are held to, and what they cost.
#include "tensorcraft/runtime/dispatch/dispatch.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/cuda/stream_priority.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/scheduler/executor.hpp"
#include "tests/support/figures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

namespace tensorcraft::dispatch {
namespace {

struct Work {
  int* data;
  int spins;
};

constexpr const char* kText = R"(
struct Work { int* data; int spins; };
extern "C" __global__ void spin(const __grid_constant__ Work p) {
  for (int s = 0; s < p.spins; ++s) __nanosleep(1000);
  if (p.data) *p.data = p.spins;
}
)";

class GpuDispatch : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
    const std::string option = "--gpu-architecture=" + device_info(Device::cuda(0)).arch();
    const cuda::NvrtcResult result = cuda::nvrtc_compile(kText, "spin.cu", {}, {&option, 1});
    ASSERT_TRUE(result.ok) << result.log;
    kernel_ = LoadedKernel::load(std::as_bytes(std::span(result.image)), "spin", 0);
    stream_.emplace();
  }
  void launch(StreamRef stream, int spins, int* data = nullptr, uint32_t blocks = 1) const {
    const Work work{data, spins};
    tensorcraft::launch(*kernel_, {.grid = {blocks}, .block = {32}}, &work, stream, "spin");
  }
  std::shared_ptr<const LoadedKernel> kernel_;
  std::optional<Stream> stream_;
};

TEST_F(GpuDispatch, CountsFollowTheStream) {
  record_launches(true);
  const Counts before = counts();
  for (int i = 0; i < 100; ++i) launch(*stream_, 100);
  const Counts during = counts();
  EXPECT_EQ(during.launched - before.launched, 100u);
  EXPECT_GT(during.in_flight, 0u);
  stream_->ref().synchronize();
  const Counts after = counts();
  EXPECT_EQ(after.completed - before.completed, 100u);
  EXPECT_EQ(after.in_flight, 0u);
  EXPECT_EQ(std::string(recent(1)[0].name.data()), "spin");
  record_launches(false);
}

TEST_F(GpuDispatch, ALimitHoldsTheHostBack) {
  set_limit(*stream_, 8);
  uint64_t most = 0;
  for (int i = 0; i < 300; ++i) {
    launch(*stream_, 20);
    most = std::max(most, counts().in_flight);
  }
  set_limit(*stream_, 0);
  EXPECT_LE(most, 8u);
  EXPECT_GE(most, 5u);
  stream_->ref().synchronize();
}

// Among blocks that wait, those of the stream with the higher priority go first.
TEST_F(GpuDispatch, AHighPriorityOvertakes) {
  const Stream low, high = cuda::make_stream(0, 5);
  const uint32_t blocks = uint32_t(device_info(Device::cuda(0)).num_sms) * 256;
  Event low_end(0, true), high_end(0, true);
  launch(low, 20, nullptr, blocks);
  launch(low, 20, nullptr, blocks);
  low_end.record(low);
  launch(high, 20, nullptr, blocks);
  high_end.record(high);
  EXPECT_GT(Event::elapsed_ms(high_end, low_end), 0);
}

TEST_F(GpuDispatch, LaunchesOfATaskAreItsOwn) {
  scheduler::CudaExecutor executor;
  executor.start(77, 0, [this](StreamRef stream) {
    const TaskScope task(77);
    launch(stream, 1);
  });
  while (executor.take_reports().empty()) executor.wait(std::chrono::milliseconds(10));
  EXPECT_EQ(recent(1)[0].task, 77u);
}

// In a process of its own, which loses its device.
TEST_F(GpuDispatch, ALossNamesTheLastLaunches) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto body = [this] {
    record_launches(true);
    int code = 1;
    try {
      launch(*stream_, 1, reinterpret_cast<int*>(8));
      stream_->ref().synchronize();
    } catch (const Error& error) {
      const std::string said = error.what();
      const size_t begin = said.find(" in /") + 4;
      const std::string path = said.substr(begin, said.find("):", begin) - begin);
      std::string line;
      std::ifstream file(path);
      std::getline(file, line);
      const bool is_right = error.kind() == ErrorKind::device_lost &&
                            said.find("\n  spin") != said.npos && line.starts_with("spin");
      if (!is_right) std::fprintf(stderr, "%s\n%s\n", said.c_str(), line.c_str());
      std::remove(path.c_str());
      code = is_right ? 0 : 2;
    }
    std::_Exit(code);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

// The cost of a launch that nobody watches, and of one through dispatch with a limit and a task.
using GpuDispatchTiming = GpuDispatch;
TEST_F(GpuDispatchTiming, AWatchedLaunchCostsAtMost300nsMore) {
  constexpr int kLaunches = 400, kRounds = 101;  // fewer than the driver's queue holds
  const auto cost = [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch(*stream_, 0);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    stream_->ref().synchronize();
    return time.count() / kLaunches;
  };
  const auto bare_cost = [&] {  // the driver's launch alone
    const cuda::Driver& driver = cuda::require_driver();
    Work work{};
    void* arguments[] = {&work};
    const cuda::LaunchSetup setup{1, 1, 1, 32, 1, 1, 0, stream_->ref().handle(), nullptr, 0};
    const DeviceGuard guard(0);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i)
      driver.launch_kernel(&setup, kernel_->handle(), arguments, nullptr);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    stream_->ref().synchronize();
    return time.count() / kLaunches;
  };
  const auto median = [](std::vector<double>& all) {
    std::nth_element(all.begin(), all.begin() + long(all.size() / 2), all.end());
    return all[all.size() / 2];
  };
  std::vector<double> bare, unwatched, watched;
  for (int round = 0; round < kRounds; ++round) {
    bare.push_back(bare_cost());
    unwatched.push_back(cost());
    set_limit(*stream_, 1000);
    {
      const TaskScope task(1);
      watched.push_back(cost());
    }
    set_limit(*stream_, 0);
  }
  const double driver = median(bare), off = median(unwatched), on = median(watched);
  test::report_figures("a launch",
                       {{"driver ns", driver}, {"library ns", off}, {"through dispatch ns", on}});
  EXPECT_LE(on - off, 300);
  EXPECT_LE(off - driver, 500);
}

}  // namespace
}  // namespace tensorcraft::dispatch
