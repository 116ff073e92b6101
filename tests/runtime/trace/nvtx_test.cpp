// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/trace/nvtx.hpp"

#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace tensorcraft {
namespace {

TEST(Nvtx, NobodyListensUnlessAProfilerStartedTheProgram) { EXPECT_FALSE(nvtx::is_listening()); }

#ifdef TENSORCRAFT_NVTX_LISTENER
// In a process of its own: who listens is asked once.
void run_under_a_profiler(const std::string& file) {
  setenv("NVTX_INJECTION64_PATH", TENSORCRAFT_NVTX_LISTENER, 1);
  setenv("TC_TEST_NVTX_FILE", file.c_str(), 1);
  const Tensor x = Tensor::from(std::vector{1.0f, 2.0f}, {2});
  {
    const dispatch::TaskScope task(7);
    add(x, x);
  }
  add(x, x);
  std::_Exit(nvtx::is_listening() ? 0 : 1);
}

TEST(Nvtx, AProfilerSeesOperatorsAndTasks) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string file = testing::TempDir() + "nvtx_ranges";
  EXPECT_EXIT(run_under_a_profiler(file), testing::ExitedWithCode(0), "");
  std::ifstream stream(file);
  const std::string seen(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(seen, "task 7\n add cpu\nadd cpu\n");
  std::remove(file.c_str());
}
#endif

}  // namespace
}  // namespace tensorcraft
