// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/executable.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace tensorcraft::jit {
namespace {

TEST(Executable, IsTheFirstNameThatMayRun) {
  const test::TemporaryFolder folder;
  constexpr std::string_view kNames[] = {"nvcc", "other"};
  EXPECT_FALSE(find_executable(folder.path(), kNames));
  folder.write("nvcc", "not executable");
  const std::string other = folder.write("other", "#!/bin/sh\n");
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  const auto found = find_executable("/nowhere:" + folder.path(), kNames);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, other);
  EXPECT_EQ(found->bytes, 10);
}

}  // namespace
}  // namespace tensorcraft::jit
