// SPDX-License-Identifier: Apache-2.0
// Checks what still works when a part of CUDA is missing, and what a first call does step by step.
// Each case is a process of its own, since a process looks for NVRTC and reads its settings once.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tensorcraft/jit/toolchain.hpp"
#include "tests/jit/child_process.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::jit {
namespace {

using test::FakeDriver;
using test::FakeGpu;
using test::ScopedVariable;

constexpr const char* kFailure = "TC_TEST_FAILURE";

// The device of a call, then what a launch of the test kernel came to.
std::string outcome() {
  std::string text = to_string(default_device()) + ": ";
  try {
    const auto kernel = get_kernel(test::scale_key(), Device::cuda());
    launch(*kernel, {}, "", StreamRef(), "scale");
    return text + "ran";
  } catch (const Error& error) {
    const std::string what = error.what();
    return text + what.substr(0, what.find('\n'));
  }
}

TEST(FallbackChild, RunsAKernelWithOnePartMissing) {
  const char* const folder = std::getenv(test::kChildFolder);
  const char* const failure = std::getenv(kFailure);
  if (!folder || !failure) GTEST_SKIP() << "runs as a child of another test";
  test::add_scale_header();
  const std::string missing = failure;
  std::vector<FakeGpu> gpus{{.compute_capability = missing == "old GPU" ? 75 : 90}};
  if (missing == "no GPU") gpus.clear();
  std::map<std::string, int> failing;
  if (missing == "no driver") failing["cuInit"] = 999;
  const FakeDriver driver(gpus, 13000, failing);
  std::string text = outcome();
  if (missing == "no NVRTC" && test::opened_nvrtc()) text += ", opened NVRTC";
  test::report(folder, text);
}

std::string outcome_of_child(const std::string& folder, const char* failure) {
  const ScopedVariable where(test::kChildFolder, folder.c_str()), what(kFailure, failure);
  const bool hides = std::string_view(failure) == "no NVRTC";
  const ScopedVariable hidden("TENSORCRAFT_NVRTC",
                              hides ? "/nonexistent" : std::getenv("TENSORCRAFT_NVRTC"));
  return test::report_of(test::start_child("FallbackChild.*"), folder);
}

TEST(Fallback, FollowsWhatIsMissingAndWhatIsCached) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const test::TemporaryFolder empty, filled;
  EXPECT_EQ(outcome_of_child(filled.path(), "nothing"), "cuda:0: ran");
  const struct {
    const char *failure, *with_empty_cache, *with_filled_cache;
  } rows[] = {
      {"no driver", "cpu: CUDA driver not detected", "cpu: CUDA driver not detected"},
      {"no GPU", "cpu: No GPU devices found (cudaGetDeviceCount == 0)",
       "cpu: No GPU devices found (cudaGetDeviceCount == 0)"},
      {"old GPU", "cpu: TensorCraft requires SM >= 80 (Ampere)",
       "cpu: TensorCraft requires SM >= 80 (Ampere)"},
      {"no NVRTC", "cuda:0: NVRTC JIT compiler not available", "cuda:0: ran"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(outcome_of_child(empty.path(), row.failure), row.with_empty_cache);
    EXPECT_EQ(outcome_of_child(filled.path(), row.failure), row.with_filled_cache);
  }
}

TEST(Fallback, RunsFromAnImportedBundleWithoutNvrtc) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const test::TemporaryFolder builder, image;
  ASSERT_EQ(outcome_of_child(builder.path(), "nothing"), "cuda:0: ran");
  KernelCache(builder.path(), kDefaultCacheBytes).export_bundle(builder.file("bundle"));
  const std::string cache = image.file("cache");
  KernelCache(cache, kDefaultCacheBytes).import_bundle(builder.file("bundle"));
  EXPECT_EQ(outcome_of_child(cache, "no NVRTC"), "cuda:0: ran");
  // Another machine's NVRTC used later in the folder does not hide the bundle's kernels.
  CacheFolder folder(cache);
  record_toolchain(folder, encode_memo({"", 0, 0, {{99, 0}, {80, 90}}}));
  EXPECT_EQ(outcome_of_child(cache, "no NVRTC"), "cuda:0: ran");
  // Kernels are not found if the folder does not name their compiler.
  for (const auto& file : std::filesystem::directory_iterator(cache))
    if (file.path().filename().string().starts_with("compiler-"))
      std::filesystem::remove(file.path());
  EXPECT_EQ(outcome_of_child(cache, "no NVRTC"), "cuda:0: NVRTC JIT compiler not available");
}

TEST(TraceChild, AsksForTwoKernelsSeveralTimes) {
  const char* const folder = std::getenv(test::kChildFolder);
  if (!folder || std::getenv(kFailure)) GTEST_SKIP() << "runs as a child of another test";
  test::add_scale_header();
  const FakeDriver driver;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    get_kernel(test::scale_key(DType::float32), Device::cuda());
    get_kernel(test::scale_key(DType::int32), Device::cuda());
  }
  test::report(folder, testing::internal::GetCapturedStderr());
}

// The steps in the lines about one kernel, in order.
std::vector<std::string> steps(const std::string& log, const std::string& kernel) {
  std::vector<std::string> found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    for (const char* const step : {"not on disk", "compiling an entry", "compiled in",
                                   "stored on disk", "loaded from disk", "loaded on cuda:0"})
      if (line.find(kernel) != line.npos && line.find(step) != line.npos) found.push_back(step);
  return found;
}

TEST(Trace, ShowsEachStepOnceForAKernel) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const test::TemporaryFolder folder;
  const ScopedVariable where(test::kChildFolder, folder.path().c_str());
  const ScopedVariable level("TENSORCRAFT_LOG", "debug");
  const auto log = [&] {
    return test::report_of(test::start_child("TraceChild.*"), folder.path());
  };
  const std::string cold = log(), warm = log();
  for (const std::string kernel : {"test_scale_float32_", "test_scale_int32_"}) {
    EXPECT_EQ(steps(cold, kernel),
              (std::vector<std::string>{"not on disk", "compiling an entry", "compiled in",
                                        "stored on disk", "loaded on cuda:0"}));
    EXPECT_EQ(steps(warm, kernel),
              (std::vector<std::string>{"loaded from disk", "loaded on cuda:0"}));
  }
}

}  // namespace
}  // namespace tensorcraft::jit
