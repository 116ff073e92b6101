// SPDX-License-Identifier: Apache-2.0
// Calls of the real driver's table fail before the driver sees them, while a two-layer model runs:
// what tests/stress shows on the fake driver holds on a GPU. Skipped if there is none.
#include "tests/stress/driver_faults.hpp"

#include "tensorcraft/cuda/nvrtc.hpp"
#include "tests/support/counting_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

namespace tensorcraft {
namespace {

using namespace test;

class GpuFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
    const Attempt clean = attempt(Device::cuda());
    ASSERT_TRUE(clean.result) << clean.error;
    ASSERT_EQ(difference(*clean.result, encoder_reference()), "");
    right_ = *clean.result;
    jit::clear_memory();
  }
  // Calls `first`, `first` + step, ... to `last`, each with another status.
  void expect_harmless(Repeat repeat, long first, long last, long step) {
    constexpr int statuses[] = {kOutOfMemory,    kInvalidValue,   kLaunchFailed,
                                kIllegalAddress, kSystemNotReady, kEccError};
    const auto begin = std::chrono::steady_clock::now();
    long runs = 0;
    for (long n = first; n <= last; n += step, ++runs) {
      const Fault fault{n, statuses[size_t(n / step) % std::size(statuses)], repeat};
      CountingTable table;
      EXPECT_EQ(run_with_fault(table, Device::cuda(), fault, right_), "") << fault.name();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%ld runs with a fault in %.1f s\n", runs, seconds.count());
  }
  Result right_;
};

TEST_F(GpuFaults, OnceAreErrorsOrHarmless) {
  expect_harmless(Repeat::once, 1, 200, 1);
  expect_harmless(Repeat::once, 201, 1600, 29);
}

TEST_F(GpuFaults, AtEveryKthCallAreErrorsOrHarmless) { expect_harmless(Repeat::every, 1, 200, 5); }

TEST_F(GpuFaults, FromACallOnAreErrorsOrHarmless) { expect_harmless(Repeat::from, 1, 200, 5); }

// The device was never harmed: it computes as before.
TEST_F(GpuFaults, LeaveTheDeviceHealthy) {
  {
    CountingTable table;
    table.faults.plan(100, kIllegalAddress);
    EXPECT_EQ(attempt(Device::cuda()).kind, ErrorKind::device_lost);
    jit::clear_memory();
  }
  const Attempt again = attempt(Device::cuda());
  ASSERT_TRUE(again.result) << again.error;
  EXPECT_EQ(*again.result, right_);
}

}  // namespace
}  // namespace tensorcraft
