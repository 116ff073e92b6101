// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/scheduler/scheduler.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/figures.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft::scheduler {
namespace {

using std::chrono::microseconds;

double median_us_of_kernel(const Tensor& x) {
  std::vector<float> times;
  for (int i = 0; i < 9; ++i) {
    tensorcraft::Event begin(0, true), end(0, true);
    begin.record(x.stream());
    exp(x, x, {.stream = x.stream()});
    end.record(x.stream());
    times.push_back(1e3F * tensorcraft::Event::elapsed_ms(begin, end));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

class SchedulerGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  }
};

// Guaranteed tasks under a flood of best-effort kernels start after at most the kernel that runs.
using SchedulerGpuTiming = SchedulerGpu;
TEST_F(SchedulerGpuTiming, AGuaranteedTaskWaitsForNoMoreThanOneKernelOfAFlood) {
  const Stream flood_stream(0), served_stream(0);
  const Tensor large(DType::float32, {int64_t(1) << 27}, Device::cuda(0), flood_stream);
  const Tensor small(DType::float32, {1024}, Device::cuda(0), served_stream);
  const double kernel_us = median_us_of_kernel(large);
  exp(small, small, {.stream = served_stream});
  served_stream.ref().synchronize();

  constexpr int kFlood = 2000, kServed = 200;
  std::vector<double> delays;  // written by the scheduler's thread alone
  std::atomic<int> flooded = 0;
  {
    Scheduler scheduler(
        {.memory_bytes = uint64_t(1) << 30, .max_running = 1, .max_pending = kFlood},
        std::make_unique<CudaExecutor>(std::vector<StreamRef>{flood_stream, served_stream}));
    for (int i = 0; i < kFlood; ++i)
      scheduler.submit({.id = TaskId(i + 1), .qos = Qos::best_effort}, [&](StreamRef stream) {
        exp(large, large, {.stream = stream});
        ++flooded;
      });
    for (int i = 0; i < kServed; ++i) {
      std::this_thread::sleep_for(microseconds(300 + 37 * (i % 11)));
      const Time submitted = steady_now();
      scheduler.submit(
          {.id = TaskId(kFlood + i + 1), .qos = Qos::guaranteed, .stream = 1},
          [&, submitted](StreamRef stream) {
            delays.push_back(
                std::chrono::duration<double, std::micro>(steady_now() - submitted).count());
            exp(small, small, {.stream = stream});
          });
    }
    scheduler.wait(kFlood + kServed);
    EXPECT_LT(flooded, kFlood) << "the flood ended before the last guaranteed task";
  }
  ASSERT_EQ(delays.size(), size_t(kServed));
  std::ranges::sort(delays);
  const double p50 = delays[kServed / 2], p99 = delays[kServed * 99 / 100];
  test::report_figures("a guaranteed task under a flood",
                       {{"kernel us", kernel_us}, {"delay p50 us", p50}, {"delay p99 us", p99}});
  EXPECT_LE(p99, kernel_us + 200);
}

// Two streams that never run dry move as much as their shares say.
TEST_F(SchedulerGpu, SharesHoldUnderLoad) {
  const Stream streams[2] = {Stream(0), Stream(0)};
  const std::vector<StreamRef> refs = {streams[0], streams[1]};
  constexpr int64_t kBytes = int64_t(32) << 20;
  const Tensor x[2] = {{DType::bool_, {kBytes}, Device::cuda(0), streams[0]},
                       {DType::bool_, {kBytes}, Device::cuda(0), streams[1]}};
  for (int s = 0; s < 2; ++s) logical_not(x[s], x[s], {.stream = refs[size_t(s)]});  // compiles
  const double shares[2] = {0.7, 0.3};
  std::atomic<int64_t> moved[2] = {0, 0};
  constexpr int kTasks = 400;
  Options options{.memory_bytes = uint64_t(1) << 30,
                  .max_running = 4,
                  .max_pending = 2 * kTasks,
                  .bytes_per_second = 200e9,
                  .shares = {{0, shares[0]}, {1, shares[1]}},
                  .window = std::chrono::milliseconds(5)};
  Scheduler scheduler(options, std::make_unique<CudaExecutor>(refs));
  for (int i = 0; i < kTasks; ++i)
    for (int s = 0; s < 2; ++s)
      scheduler.submit({.id = TaskId(2 * i + s + 1), .stream = s, .traffic_bytes = 2 * kBytes},
                       [&, s](StreamRef stream) {
                         logical_not(x[s], x[s], {.stream = stream});
                         moved[s] += 2 * kBytes;
                       });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the first bursts
  const int64_t before[2] = {moved[0], moved[1]};              // of it nothing counts
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  const double first = double(moved[0] - before[0]), second = double(moved[1] - before[1]);
  test::report_figures("shares of two streams under load",
                       {{"asked for", shares[0]}, {"had", first / (first + second)}});
  ASSERT_GT(second, 0);
  EXPECT_LT(moved[0], int64_t(kTasks) * 2 * kBytes) << "a stream ran dry";
  EXPECT_NEAR(first / (first + second), shares[0], 0.05);
}

}  // namespace
}  // namespace tensorcraft::scheduler
