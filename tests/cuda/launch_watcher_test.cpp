// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch_watcher.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::cuda {
namespace {

using test::FakeDriver;

struct Watcher final : LaunchWatcher {
  void before(const LaunchNote& note) override {
    seen += "before " + std::string(note.what) + (note.is_recorded ? " recorded" : "") + "; ";
    if (refuses) fail(ErrorKind::cancelled, "refused");
  }
  void after(const LaunchNote&, bool launched) noexcept override {
    seen += launched ? "launched; " : "failed; ";
  }
  std::string seen;
  bool refuses = false;
};

TEST(LaunchWatcher, SeesEachLaunchAndMayRefuseIt) {
  FakeDriver fake;
  const std::byte image[4] = {};
  const auto kernel = LoadedKernel::load(image, "tc_entry", 0);
  const Stream stream;
  Watcher watcher;
  const auto launch_one = [&] {
    launch(*kernel, {.grid = {1}, .block = {32}}, nullptr, stream, "gemm");
  };
  launch_one();
  EXPECT_EQ(launch_watcher(), nullptr);
  watch_launches(&watcher);
  launch_one();
  EXPECT_EQ(watcher.seen, "before gemm; launched; ");
  watcher.refuses = true;
  EXPECT_THROW(launch_one(), Error);
  watcher.refuses = false;
  fake.failing["cuLaunchKernelEx"] = 701;
  EXPECT_THROW(launch_one(), Error);
  EXPECT_THROW(Graph(stream, launch_one), Error);
  EXPECT_EQ(watcher.seen,
            "before gemm; launched; before gemm; before gemm; failed; before gemm recorded; "
            "failed; ");
  watch_launches(nullptr);
  EXPECT_EQ(fake.launches.size(), 2u);
}

TEST(LaunchWatcher, KernelsHaveTheNameOfTheLastThatHadTheHandle) {
  const int kernel = 0;
  EXPECT_EQ(name_of_kernel(&kernel), "");
  name_kernel(&kernel, "one");
  name_kernel(&kernel, "two");
  EXPECT_EQ(name_of_kernel(&kernel), "two");
}

}  // namespace
}  // namespace tensorcraft::cuda
