// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/folder.hpp"

#include "tests/jit/test_rung.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using enum CacheFolder::ReadResult;

unsigned mode_of(const std::string& path) {
  struct stat status{};
  stat(path.c_str(), &status);
  return status.st_mode & 0777;
}

TEST(CacheFolder, GivesBackWhatWasWrittenWithModesForTheOwnerAlone) {
  const TemporaryFolder root;
  CacheFolder folder(root.file("deep/er/cache"));
  std::string bytes;
  EXPECT_EQ(folder.read("a", bytes), absent);
  EXPECT_TRUE(folder.write("a", "first"));
  EXPECT_TRUE(folder.write("a", std::string("sec\0nd", 6)));
  EXPECT_EQ(folder.read("a", bytes), done);
  EXPECT_EQ(bytes, std::string("sec\0nd", 6));
  EXPECT_EQ(mode_of(folder.path()), 0700u);
  EXPECT_EQ(mode_of(folder.path() + "/a"), 0600u);
  folder.remove("a");
  EXPECT_EQ(folder.read("a", bytes), absent);
}

TEST(CacheFolder, NeverFollowsALinkToTheFolder) {
  const TemporaryFolder root;
  fs::create_directory(root.file("real"));
  fs::create_symlink(root.file("real"), root.file("link"));
  test::write_file(root.file("real/a"), "planted");
  CacheFolder folder(root.file("link"));
  std::string bytes;
  testing::internal::CaptureStderr();
  EXPECT_EQ(folder.read("a", bytes), absent);
  EXPECT_FALSE(folder.write("b", "x"));
  EXPECT_FALSE(CacheFolder::Lock(folder, "lock", std::chrono::seconds(1)).held());
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("symbolic link"), std::string::npos) << warning;
  EXPECT_EQ(warning.find("symbolic link"), warning.rfind("symbolic link")) << "warned twice";
  EXPECT_FALSE(fs::exists(root.file("real/b")));
}

TEST(CacheFolder, RefusesAFolderOrFileThatOthersMayWrite) {
  const TemporaryFolder root;
  CacheFolder folder(root.file("cache"));
  std::string bytes;
  ASSERT_TRUE(folder.write("a", "x"));
  fs::create_symlink("a", root.file("cache/link"));
  mkfifo(root.file("cache/fifo").c_str(), 0600);
  EXPECT_EQ(folder.read("link", bytes), refused);
  EXPECT_EQ(folder.read("fifo", bytes), refused);
  chmod(root.file("cache/a").c_str(), 0660);
  EXPECT_EQ(folder.read("a", bytes), refused);
  chmod(root.file("cache/a").c_str(), 0600);
  EXPECT_EQ(folder.read("a", bytes), done);
  chmod(root.file("cache").c_str(), 0770);
  EXPECT_EQ(folder.read("a", bytes), absent);
}

TEST(CacheFolder, RefusesAFileOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change an owner";
  const TemporaryFolder root;
  CacheFolder folder(root.file("cache"));
  ASSERT_TRUE(folder.write("a", "x"));
  ASSERT_EQ(chown(root.file("cache/a").c_str(), 12345, 12345), 0);
  std::string bytes;
  EXPECT_EQ(folder.read("a", bytes), refused);
  ASSERT_EQ(chown(root.file("cache").c_str(), 12345, 12345), 0);
  EXPECT_EQ(folder.read("a", bytes), absent);
  EXPECT_FALSE(folder.write("b", "x"));
}

TEST(CacheFolder, GoesOnWithoutAFolder) {
  const TemporaryFolder root;
  test::write_file(root.file("file"), "");
  for (const std::string& path : {std::string(), root.file("file/below"), root.file("file")}) {
    CacheFolder folder(path);
    std::string bytes;
    EXPECT_FALSE(folder.write("a", "x")) << path;
    EXPECT_EQ(folder.read("a", bytes), absent) << path;
    EXPECT_FALSE(CacheFolder::Lock(folder, "lock", std::chrono::seconds(1)).held()) << path;
    EXPECT_EQ(folder.trim("", 0), 0u) << path;
    folder.remove("a");
  }
}

TEST(CacheFolder, ComesBackAfterItWasDeleted) {
  const TemporaryFolder root;
  CacheFolder folder(root.file("cache"));
  ASSERT_TRUE(folder.write("a", "x"));
  fs::remove_all(folder.path());
  EXPECT_TRUE(folder.write("a", "y"));
}

TEST(CacheFolder, LeavesNoTemporaryFileWhenARenameFails) {
  const TemporaryFolder root;
  CacheFolder folder(root.file("cache"));
  fs::create_directories(root.file("cache/a/in_the_way"));
  fs::permissions(root.file("cache"), fs::perms::owner_all);
  EXPECT_FALSE(folder.write("a", "x"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(CacheFolder, TrimsWhatWasUnusedForLongest) {
  const TemporaryFolder root;
  CacheFolder folder(root.file("cache"));
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 10; ++i) {
    const std::string name = std::to_string(i) + ".kernel";
    folder.write(name, std::string(100, 'x'));
    fs::last_write_time(folder.path() + "/" + name, now - std::chrono::minutes(20 - i));
  }
  folder.write("other", std::string(5000, 'x'));
  EXPECT_EQ(folder.trim(".kernel", 1000), 1000u);
  std::string bytes;
  EXPECT_EQ(folder.read("0.kernel", bytes), done);  // used now
  EXPECT_EQ(folder.trim(".kernel", 800), 700u);
  for (const int gone : {1, 2, 3}) {
    EXPECT_EQ(folder.read(std::to_string(gone) + ".kernel", bytes), absent) << gone;
  }
  EXPECT_EQ(folder.read("0.kernel", bytes), done);
  EXPECT_EQ(folder.read("4.kernel", bytes), done);
  EXPECT_EQ(folder.read("other", bytes), done);
}

TEST(CacheFolder, RemovesTemporaryFilesThatAreOlderThanAnHour) {
  const TemporaryFolder root;
  CacheFolder folder(root.path());
  for (const char* const name : {"tmp-old", "tmp-new"}) test::write_file(root.file(name), "x");
  fs::last_write_time(root.file("tmp-old"),
                      fs::file_time_type::clock::now() - std::chrono::minutes(61));
  folder.trim(".kernel", 1000);
  EXPECT_FALSE(fs::exists(root.file("tmp-old")));
  EXPECT_TRUE(fs::exists(root.file("tmp-new")));
}

TEST(CacheFolder, LockIsHeldByOneAndGivesUpAfterTheTimeOut) {
  const TemporaryFolder root;
  CacheFolder folder(root.path());
  {
    const CacheFolder::Lock first(folder, "lock", std::chrono::seconds(1));
    EXPECT_TRUE(first.held());
    EXPECT_FALSE(CacheFolder::Lock(folder, "lock", std::chrono::milliseconds(5)).held());
    EXPECT_TRUE(CacheFolder::Lock(folder, "other", std::chrono::milliseconds(5)).held());
  }
  EXPECT_TRUE(CacheFolder::Lock(folder, "lock", std::chrono::seconds(1)).held());
}

// A child has the file of each lock, too: here it lives until the parent has taken the lock again.
TEST(CacheFolder, AForkedChildHoldsNoLockOfItsParent) {
  const TemporaryFolder root;
  CacheFolder folder(root.path());
  std::optional<CacheFolder::Lock> lock(std::in_place, folder, "lock", std::chrono::seconds(1));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  lock.reset();
  EXPECT_TRUE(CacheFolder::Lock(folder, "lock", std::chrono::seconds(1)).held());
  close(ends[1]);
  waitpid(child, nullptr, 0);
  close(ends[0]);
}

}  // namespace
}  // namespace tensorcraft::jit
