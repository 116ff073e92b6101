// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/work_folder.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(WorkFolder, OfAKilledProcessIsRemovedByTheNext) {
  int names[2];
  ASSERT_EQ(pipe(names), 0);
  const pid_t child = fork();
  if (child == 0) {
    const WorkFolder folder("test");
    folder.write("a", "x");
    _exit(write(names[1], folder.path().data(), folder.path().size()) > 0 && pause());
  }
  std::string left(256, ' ');
  left.resize(size_t(std::max<ssize_t>(read(names[0], left.data(), left.size()), 0)));
  const WorkFolder of_a_living_process("test");
  EXPECT_TRUE(std::filesystem::exists(left));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const WorkFolder next("test");
  EXPECT_FALSE(std::filesystem::exists(left)) << left;
  EXPECT_TRUE(std::filesystem::exists(of_a_living_process.path()));
  close(names[0]);
  close(names[1]);
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
