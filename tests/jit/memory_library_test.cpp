// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/memory_library.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

namespace tensorcraft::jit {
namespace {

size_t open_files() {
  return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(MemoryLibrary, LeavesNothingBehindThatCannotBeLoaded) {
  const size_t before = open_files();
  test::expect_error_with(ErrorKind::compile, "test: mine cannot be loaded:", [] {
    MemoryLibrary("mine", "no library", "test");
  });
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace tensorcraft::jit
