// SPDX-License-Identifier: Apache-2.0
// Processes killed at random moments of compile and publish leave no bad entry, no lock and, after
// a while, no file; a process that waited for one of them goes on.
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/file_faults.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::Child;
using test::scale_key;

constexpr int kTrimEvery = 8;  // so that trimming is interrupted as well

class Kill : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(test::kCompilerIsSet, 0);
    setenv("TC_TEST_COMPILE_US", "1500", 1);
    test::add_scale_header();
    if (test::uses_real_compiler() && !test::has_compiler(log_)) GTEST_SKIP() << "no NVRTC";
  }
  void TearDown() override { unsetenv("TC_TEST_COMPILE_US"); }

  static KernelKey key_of(int seed, int number) {
    return scale_key(DType::float32, 1 + (seed * 131 + number) % 100000);
  }
  // Builds one fresh key after another; returns when `count` are done.
  int build(int seed, int count) const {
    test::file_faults.write_pause_us = 50;
    Compiler compiler(folder_, kLimit);
    for (int i = 0; i < count; ++i) {
      compiler.build(key_of(seed, i), "sm_90a");
      if (compiler.bad_entries() > 0) dprintf(STDERR_FILENO, "warning: a bad entry\n");
      if (i % kTrimEvery == 0) CacheFolder(folder_).trim(kEntrySuffix, kLimit);
    }
    return 0;
  }
  Child start(int seed, int count) const {
    return Child(log_, [=, this] { return build(seed, count); });
  }

  // How long a process takes from its start to its third entry. Kills must find more than processes
  // that have not published yet, on a slow disk too.
  std::chrono::microseconds time_of_three_entries() const {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(start(kOwnKeys, 3).wait(), 0) << test::read_file(log_);
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
  }
  // Returns once there are more entries than that, however slow the machine is.
  void wait_for_more_than(size_t before) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (entries() <= before) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << test::read_file(log_);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  size_t entries() const { return KernelCache(folder_, kLimit).stat().entries; }

  void expect_locks_are_free() const {
    CacheFolder folder(folder_);
    for (const auto& file : folder.list("lock-", ""))
      EXPECT_TRUE(CacheFolder::Lock(folder, file.name, std::chrono::seconds(1)).held());
  }
  void expect_orphans_go() const {
    CacheFolder folder(folder_);
    const auto orphans = folder.list(CacheFolder::kTemporaryPrefix, "");
    for (const auto& file : orphans)
      fs::last_write_time(folder_ + "/" + file.name,
                          fs::file_time_type::clock::now() - std::chrono::minutes(2));
    ASSERT_EQ(start(1, 1).wait(), 0);
    EXPECT_TRUE(folder.list(CacheFolder::kTemporaryPrefix, "").empty());
    RecordProperty("orphans", int(orphans.size()));
  }

  static constexpr int kOwnKeys = 701;  // a seed that no kill has
  static constexpr size_t kLimit = 4 << 20;
  test::TemporaryFolder root_;
  std::string folder_ = root_.file("cache"), log_ = root_.file("log");
};

TEST_F(Kill, LeavesNoBadEntryNoLockAndNoFile) {
  const int kills = test::repeats(100, 1000);
  std::mt19937 random(7);
  std::uniform_int_distribution<long> moment_us(500, 2 * time_of_three_entries().count());
  for (int i = 0; i < kills; i += 2) {
    // Two processes that build the same keys: one of them waits for the lock of the other.
    Child first = start(i, 1 << 20), second = start(i, 1 << 20);
    std::this_thread::sleep_for(std::chrono::microseconds(moment_us(random)));
    first.kill_now();
    std::this_thread::sleep_for(std::chrono::microseconds(moment_us(random) / 4));
    second.kill_now();
    if (i % 20 == 0) {
      ASSERT_EQ(start(i, 3).wait(std::chrono::seconds(20)), 0)
          << "hangs: " << test::read_file(log_);
    }
  }
  KernelCache cache(folder_, kLimit);
  EXPECT_GT(cache.stat().entries, 10u) << "the kills came before there was anything to harm";
  EXPECT_LE(cache.stat().bytes, kLimit + (size_t(1) << 17));
  EXPECT_EQ(cache.verify().removed, std::vector<std::string>());
  EXPECT_EQ(test::count_of(test::read_file(log_), "warning"), 0) << test::read_file(log_);
  expect_locks_are_free();
  expect_orphans_go();
  RecordProperty("kills", kills);
}

// The image of an entry is that of its key, whichever process was killed. The keys are no more than
// the limit has room for: a process that goes on would trim the first ones, which are compared.
TEST_F(Kill, LeavesTheRightImageUnderEachKey) {
  constexpr int kKeys = 48;
  std::mt19937 random(9);
  for (int i = 0; i < 10; ++i) {
    const size_t before = entries();
    Child child = start(0, kKeys);
    if (before < kKeys) wait_for_more_than(before);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    child.kill_now();
  }
  const auto compare = [this] {
    Compiler stored(folder_, kLimit), fresh("");
    int wrong = 0;
    for (int i = 0; i < 12; ++i) {
      wrong += stored.build(key_of(0, i), "sm_90a").entry.image !=
               fresh.build(key_of(0, i), "sm_90a", true).entry.image;
    }
    return wrong + (stored.disk_hits() > 0 ? 0 : 100);
  };
  EXPECT_EQ(Child(log_, compare).wait(), 0) << test::read_file(log_);
}

}  // namespace
}  // namespace tensorcraft::jit
