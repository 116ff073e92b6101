// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/warmup.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tests/jit/test_rung.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/no_threads.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace tensorcraft::jit {
namespace {

using test::FakeDriver;
using test::scale_key;

// Keys of this test alone, so that nothing on disk knows them.
std::vector<KernelKey> fresh_keys(int count) {
  static int next = 5000;
  std::vector<KernelKey> keys;
  for (int i = 0; i < count; ++i) keys.push_back(scale_key(DType::float32, next++));
  return keys;
}

class Warmup : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
    // Apart from other tests' text, whose kernels may be on disk.
    test::add_scale_header(std::to_string(getpid()));
    clear_memory();
  }
  void TearDown() override {
    clear_memory();
    test::add_scale_header();
  }
};

TEST_F(Warmup, CompilesEachKernelOnceAndSaysHowFarItIs) {
  std::vector<KernelKey> keys = fresh_keys(6);
  keys.push_back(keys[0]);
  std::set<std::string> names;
  size_t calls = 0;
  const auto progress = [&, caller = std::this_thread::get_id()](const WarmupStep& step) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(step.done, ++calls);
    EXPECT_EQ(step.total, 6u);
    EXPECT_EQ(step.error, "");
    EXPECT_FALSE(step.from_disk);
    EXPECT_GT(step.milliseconds, 0);
    names.insert(step.name);
  };
  const WarmupReport cold = warmup(keys, "sm_90a", progress);
  EXPECT_EQ(calls, 6u);
  EXPECT_EQ(names.size(), 6u);
  EXPECT_EQ(cold.compiled, 6u);
  EXPECT_EQ(cold.from_disk, 0u);
  EXPECT_TRUE(cold.failures.empty());
  const WarmupReport again = warmup(keys, "sm_90a", {}, 3);
  EXPECT_EQ(again.compiled, 0u);
  EXPECT_EQ(again.from_disk, 6u);
}

TEST_F(Warmup, LoadsOnADeviceSoThatNoCallWaits) {
  const FakeDriver driver;
  const std::vector<KernelKey> keys = fresh_keys(3);
  EXPECT_EQ(warmup(keys, Device::cuda()).compiled, 3u);
  EXPECT_EQ(driver.libraries, 3);
  const Counters before = counters();
  for (const KernelKey& key : keys) get_kernel(key, Device::cuda());
  EXPECT_EQ(counters().compiles, before.compiles);
  EXPECT_EQ(counters().disk_hits, before.disk_hits);
  clear_memory();
}

TEST_F(Warmup, CompilesOnTheCallersThreadWhereNoOtherCanBeStarted) {
  const std::vector<KernelKey> keys = fresh_keys(2);
  const test::NoThreads none;
  EXPECT_EQ(warmup(keys, "sm_90a", {}, 2).compiled, 2u);
}

TEST_F(Warmup, ReportsAKernelThatFailsAndGoesOn) {
  std::vector<KernelKey> keys = fresh_keys(3);
  keys[1].threads = 1 << 20;  // beyond what a block may have
  const WarmupReport report = warmup(keys, "sm_90a");
  EXPECT_EQ(report.compiled, 2u);
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_NE(report.failures[0].error.find("1024"), std::string::npos) << report.failures[0].error;
}

TEST_F(Warmup, EndsEarlyWhereTheCallerThrows) {
  const std::vector<KernelKey> keys = fresh_keys(40);
  const long before = counters().compiles;
  const auto stop = [](const WarmupStep&) { fail(ErrorKind::cancelled, "enough"); };
  test::expect_error(ErrorKind::cancelled, [&] { warmup(keys, "sm_90a", stop, 2); }, "enough");
  EXPECT_LT(counters().compiles - before, 40);
}

TEST_F(Warmup, HasNothingToDoForAnEmptyList) {
  EXPECT_EQ(warmup({}, "sm_90a").compiled, 0u);
  EXPECT_THROW(warmup({}, "sm_90a", {}, -1), Error);
  EXPECT_THROW(warmup({}, Device::cpu()), Error);
}

}  // namespace
}  // namespace tensorcraft::jit
