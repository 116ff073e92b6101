// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/work_folder.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace tensorcraft::jit {
namespace {

TEST(WorkFolder, RunsProgramsAndIsGoneAfterwards) {
  std::string path;
  {
    const WorkFolder folder("test");
    path = folder.path();
    folder.write("a/b.txt", "said\n");
    EXPECT_TRUE(folder.run({"/bin/cat", "a/b.txt"}));
    EXPECT_FALSE(folder.run({"/bin/false"}));
    EXPECT_EQ(folder.log(), "said\n");
    test::expect_error_with(ErrorKind::io, "test: cannot run /nowhere/program",
                            [&] { folder.run({"/nowhere/program"}); });
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WorkFolder, OfAUserStays) {
  const test::TemporaryFolder outer;
  const std::string path = outer.path() + "/made/for/it";
  WorkFolder("test", path).write("a", "x");
  WorkFolder("test", path).run({"/bin/echo", "once"});
  const WorkFolder folder("test", path);
  EXPECT_EQ(folder.read("a"), "x");
  EXPECT_EQ(folder.log(), "");
}

}  // namespace
}  // namespace tensorcraft::jit
