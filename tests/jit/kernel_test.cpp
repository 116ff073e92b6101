// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tests/jit/child_process.hpp"
#include "tests/jit/test_rung.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::FakeDriver;
using test::FakeGpu;
using test::scale_key;

// The process-wide cache reads its folder once, so one folder serves all tests of this program; a
// child gets that of its parent.
const std::string& cache_root() {
  static const test::TemporaryFolder root;
  static const char* const given = std::getenv(test::kChildFolder);
  static const std::string path = given ? given : root.path();
  return path;
}
const int kFolderIsSet = setenv("TENSORCRAFT_CACHE_DIR", cache_root().c_str(), 1);

class GetKernel : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kFolderIsSet, 0);
    if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
    for (const auto& file : fs::directory_iterator(cache_root())) {
      if (file.path().extension() == ".kernel") fs::remove(file.path());
    }
    test::add_scale_header();
    set_memory_limit(4096);
    clear_memory();
    before_ = counters();
  }
  void TearDown() override { clear_memory(); }

  Counters since() const {
    const Counters now = counters();
    return {now.memory_hits - before_.memory_hits, now.disk_hits - before_.disk_hits,
            now.compiles - before_.compiles, now.bad_entries - before_.bad_entries};
  }

  FakeDriver driver_{std::vector<FakeGpu>(2)};
  Counters before_;
};

TEST_F(GetKernel, CompilesOnceThenAnswersFromMemory) {
  const auto kernel = get_kernel(scale_key(), Device::cuda());
  EXPECT_EQ(kernel->device(), 0);
  EXPECT_EQ(get_kernel(scale_key(), Device::cuda()), kernel);
  std::thread([&] { EXPECT_EQ(get_kernel(scale_key(), Device::cuda()), kernel); }).join();
  EXPECT_EQ(since().compiles, 1);
  EXPECT_EQ(since().memory_hits, 2);
  EXPECT_EQ(since().disk_hits, 0);
}

TEST_F(GetKernel, AnswersFromDiskAfterARestart) {
  get_kernel(scale_key(), Device::cuda());
  clear_memory();
  get_kernel(scale_key(), Device::cuda());
  EXPECT_EQ(since().compiles, 1);
  EXPECT_EQ(since().disk_hits, 1);
  EXPECT_EQ(since().memory_hits, 0);
}

TEST_F(GetKernel, LoadsOncePerDeviceFromOneImage) {
  const auto first = get_kernel(scale_key(), Device::cuda(0));
  const auto second = get_kernel(scale_key(), Device::cuda(1));
  EXPECT_NE(first, second);
  EXPECT_EQ(second->device(), 1);
  EXPECT_EQ(since().compiles, 1);
}

TEST_F(GetKernel, CompilesOnceForManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<const LoadedKernel>> kernels(8);
  for (auto& kernel : kernels) {
    threads.emplace_back([&kernel] { kernel = get_kernel(scale_key(), Device::cuda()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::ranges::count(kernels, kernels[0]), 8);
  EXPECT_EQ(since().compiles, 1);
  EXPECT_EQ(since().memory_hits, 7);
}

TEST_F(GetKernel, ForgetsTheKernelUnusedForLongest) {
  set_memory_limit(2);
  std::weak_ptr<const LoadedKernel> first =
      get_kernel(scale_key(DType::float32, 1), Device::cuda());
  get_kernel(scale_key(DType::float32, 2), Device::cuda());
  get_kernel(scale_key(DType::float32, 3), Device::cuda());
  set_memory_limit(2);  // also forgets what this thread remembers
  get_kernel(scale_key(DType::float32, 3), Device::cuda());
  get_kernel(scale_key(DType::float32, 2), Device::cuda());
  EXPECT_EQ(since().memory_hits, 2);
  get_kernel(scale_key(DType::float32, 1), Device::cuda());
  EXPECT_EQ(since().disk_hits, 1) << "the first was loaded again";
  EXPECT_EQ(since().compiles, 3);
}

TEST_F(GetKernel, AForgottenKernelLivesWhileItIsUsed) {
  auto kernel = get_kernel(scale_key(), Device::cuda());
  const std::weak_ptr<const LoadedKernel> watched = kernel;
  clear_memory();
  get_kernel(scale_key(), Device::cuda());  // takes the place in this thread's memory
  EXPECT_FALSE(watched.expired());
  kernel.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(GetKernel, CompilesAgainWhereTheDriverRefusesAnImageFromDisk) {
  get_kernel(scale_key(), Device::cuda());
  clear_memory();
  driver_.fail_at("cuLibraryLoadData", driver_.calls["cuLibraryLoadData"] + 1, 200);
  EXPECT_NE(get_kernel(scale_key(), Device::cuda()), nullptr);
  EXPECT_EQ(since().bad_entries, 1);
  EXPECT_EQ(since().compiles, 2);
}

TEST_F(GetKernel, KeepsNoFailureAndTellsEachCaller) {
  add_source("tensorcraft/test/scale.cuh", "this does not compile\n");
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      get_kernel(scale_key(), Device::cuda());
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::compile);
    }
  }
  test::add_scale_header();
  EXPECT_NE(get_kernel(scale_key(), Device::cuda()), nullptr);
  EXPECT_EQ(since().compiles, 1);
}

TEST_F(GetKernel, AMissDuringAGraphCaptureAsksForAWarmUp) {
  const Stream stream;
  driver_.capturing = true;
  for (int attempt = 0; attempt < 2; ++attempt)
    test::expect_error(
        ErrorKind::unsupported, [&] { get_kernel(scale_key(), Device::cuda(), stream); },
        "jit: test_scale_float32_bm1_u2 is not loaded on cuda:0, and cannot be while a CUDA graph "
        "is captured; warm up first: make the same call once before the capture begins");
  EXPECT_EQ(since().compiles, 0);
  EXPECT_EQ(driver_.calls["cuLibraryLoadData"], 0);
  driver_.capturing = false;
  const auto kernel = get_kernel(scale_key(), Device::cuda(), stream);
  driver_.capturing = true;
  EXPECT_EQ(get_kernel(scale_key(), Device::cuda(), stream), kernel);
  std::thread([&] { EXPECT_EQ(get_kernel(scale_key(), Device::cuda(), stream), kernel); }).join();
}

// The context is made on another thread, and the kernel is not compiled after it.
TEST_F(GetKernel, MakesTheContextWhileItCompiles) {
  std::atomic<bool> overlapped = false;
  driver_.on_call = [&](std::string_view name) {
    if (name != "cuDevicePrimaryCtxRetain") return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!overlapped && std::chrono::steady_clock::now() < end)
      overlapped = counters().compiles > before_.compiles;
  };
  // A thread that remembers no kernel of an earlier test, which it would give back first.
  std::thread([] { get_kernel(scale_key(), Device::cuda()); }).join();
  EXPECT_TRUE(overlapped);
  EXPECT_EQ(driver_.retained_contexts, 1);
}

// The kernel that is asked for first is not loaded before the other is compiled too.
TEST_F(GetKernel, LoadAheadCompilesBesideTheCaller) {
  std::atomic<bool> overlapped = false;
  driver_.on_call = [&](std::string_view name) {
    if (name != "cuLibraryLoadData") return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!overlapped && std::chrono::steady_clock::now() < end)
      overlapped = counters().compiles == before_.compiles + 2;
  };
  const KernelKey first = scale_key(), second = scale_key(DType::float32, 3);
  const std::future<void> ahead = load_ahead(second, Device::cuda());
  ASSERT_TRUE(ahead.valid());
  get_kernel(first, Device::cuda());
  EXPECT_TRUE(overlapped);
  get_kernel(second, Device::cuda());
  EXPECT_EQ(since().compiles, 2);
  EXPECT_EQ(since().memory_hits, 1);
}

TEST_F(GetKernel, LoadAheadBeginsNothingThatIsThereOrCannotBeLoaded) {
  const Stream stream;
  driver_.capturing = true;
  EXPECT_FALSE(load_ahead(scale_key(), Device::cuda(), stream).valid());
  EXPECT_EQ(since().compiles, 0);
  driver_.capturing = false;
  get_kernel(scale_key(), Device::cuda(), stream);
  EXPECT_FALSE(load_ahead(scale_key(), Device::cuda(), stream).valid());
  std::thread([&] { EXPECT_FALSE(load_ahead(scale_key(), Device::cuda()).valid()); }).join();
  EXPECT_THROW(load_ahead(scale_key(), Device::cpu()), Error);
}

TEST_F(GetKernel, WhatFailsAheadIsToldToWhoAsks) {
  add_source("tensorcraft/test/scale.cuh", "this does not compile\n");
  EXPECT_NO_THROW(load_ahead(scale_key(), Device::cuda()).get());
  EXPECT_THROW(get_kernel(scale_key(), Device::cuda()), Error);
  test::add_scale_header();
  EXPECT_NE(get_kernel(scale_key(), Device::cuda()), nullptr);
}

TEST_F(GetKernel, SaysWhyThereIsNoContext) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's pthread_once stays taken when its function throws";
#endif
  driver_.failing["cuDevicePrimaryCtxRetain"] = 2;
  test::expect_error(
      ErrorKind::out_of_memory, [] { get_kernel(scale_key(), Device::cuda()); },
      "cuDevicePrimaryCtxRetain: out of memory (2)");
  driver_.failing.clear();
  EXPECT_NE(get_kernel(scale_key(), Device::cuda()), nullptr);
  EXPECT_EQ(since().compiles, 1) << "what was compiled is on disk";
}

TEST_F(GetKernel, RefusesAHostDevice) {
  test::expect_error(
      ErrorKind::value, [] { get_kernel(scale_key(), Device::cpu()); },
      "jit: kernels are compiled for CUDA devices, got cpu");
}

TEST_F(GetKernel, WarmLookUpTakesLessThanTenMicroseconds) {
  const KernelKey key = scale_key();
  get_kernel(key, Device::cuda());
  constexpr int kCalls = 20000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) get_kernel(key, Device::cuda());
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  RecordProperty("warm_ns", int(elapsed.count() / kCalls));
  EXPECT_LT(elapsed.count() / kCalls, 10000);
}

TEST_F(GetKernel, ReportCarriesWhatThePtxasLogSays) {
  const CompileReport cold = compile(scale_key(), "sm_90a");
  const CompileReport warm = compile(scale_key(), "sm_90a");
  EXPECT_FALSE(cold.from_disk);
  EXPECT_TRUE(warm.from_disk);
  EXPECT_EQ(warm.image, cold.image);
  EXPECT_EQ(warm.signature, cold.signature);
  EXPECT_GT(warm.registers, 0);
  EXPECT_EQ(warm.registers, cold.registers);
  EXPECT_EQ(warm.spill_bytes, 0u);
  EXPECT_GT(warm.milliseconds, 0);
  EXPECT_FALSE(compile(scale_key(), "sm_90a", true).from_disk);
}

}  // namespace
}  // namespace tensorcraft::jit
