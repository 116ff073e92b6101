// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/cache.hpp"

#include "tests/jit/test_rung.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

const std::string kKeyA(64, 'a'), kKeyB(64, 'b');

CacheEntry sample_entry(size_t image_bytes = 1000) {
  return {.signature = "gemm_naive",
          .arch = "sm_90a",
          .options = "--std=c++20",
          .image = std::string(image_bytes, '\x7f'),
          .log = "ptxas info",
          .created = 1700000000,
          .milliseconds = 12.5};
}

TEST(DiskCache, GivesBackEveryFieldOfAnEntry) {
  const TemporaryFolder root;
  DiskCache(root.file("cache")).store(kKeyA, sample_entry());
  DiskCache cache(root.file("cache"));
  const auto entry = cache.load(kKeyA, "sm_90a");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->signature, "gemm_naive");
  EXPECT_EQ(entry->arch, "sm_90a");
  EXPECT_EQ(entry->options, "--std=c++20");
  EXPECT_EQ(entry->image, sample_entry().image);
  EXPECT_EQ(entry->log, "ptxas info");
  EXPECT_EQ(entry->created, 1700000000);
  EXPECT_EQ(entry->milliseconds, 12.5);
  EXPECT_FALSE(cache.load(kKeyB, "sm_90a"));
  EXPECT_EQ(cache.bad_entries(), 0);
}

TEST(DiskCache, NoticesEveryFlippedBitAndEveryTruncation) {
  const std::string good = encode_entry(sample_entry(40), kKeyA);
  ASSERT_TRUE(decode_entry(good, kKeyA, "sm_90a"));
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string damaged = good;
    damaged[bit / 8] ^= char(1 << bit % 8);
    EXPECT_FALSE(decode_entry(damaged, kKeyA, "sm_90a")) << "bit " << bit;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_entry(good.substr(0, size), kKeyA, "sm_90a")) << "size " << size;
  }
  EXPECT_FALSE(decode_entry(good + "x", kKeyA, "sm_90a"));
}

TEST(DiskCache, RejectsAnEntryUnderAnotherNameOrForAnotherArchitecture) {
  const TemporaryFolder root;
  DiskCache cache(root.file("cache"));
  ASSERT_TRUE(cache.store(kKeyA, sample_entry()));
  fs::copy_file(root.file("cache/" + kKeyA + ".kernel"), root.file("cache/" + kKeyB + ".kernel"));
  EXPECT_FALSE(cache.load(kKeyB, "sm_90a"));
  EXPECT_FALSE(fs::exists(root.file("cache/" + kKeyB + ".kernel"))) << "a bad entry is removed";
  EXPECT_FALSE(cache.load(kKeyA, "sm_90"));
  EXPECT_EQ(cache.bad_entries(), 2);
}

TEST(DiskCache, StaysWithinItsLimitWhileThreadsWrite) {
  const TemporaryFolder root;
  constexpr size_t kLimit = 100000;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&root, writer] {
      DiskCache cache(root.file("cache"), kLimit);
      for (int i = 0; i < 250; ++i) {
        std::string key = std::to_string(writer * 1000 + i);
        key.resize(64, '0');
        cache.store(key, sample_entry());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  size_t total = 0, files = 0;
  for (const auto& file : fs::directory_iterator(root.file("cache"))) {
    total += file.file_size();
    ++files;
  }
  EXPECT_LE(total, kLimit);
  EXPECT_GT(files, 40u) << "more was removed than needed";
}

// Publishes entries until it is killed.
[[noreturn]] void publish_for_ever(const std::string& folder) {
  DiskCache cache(folder);
  for (int i = 0;; ++i) {
    std::string key = std::to_string(i % 16);
    key.resize(64, '0');
    const CacheFolder::Lock lock = cache.lock(key, std::chrono::seconds(1));
    cache.store(key, sample_entry(200000));
  }
}

TEST(DiskCache, HasNoBadEntryAndNoStaleLockAfterKills) {
  const TemporaryFolder root;
  const std::string folder = root.file("cache");
  for (int kill_number = 0; kill_number < 30; ++kill_number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) publish_for_ever(folder);
    std::this_thread::sleep_for(std::chrono::microseconds(3000 + 700 * kill_number));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  DiskCache cache(folder);
  int good = 0;
  for (int i = 0; i < 16; ++i) {
    std::string key = std::to_string(i);
    key.resize(64, '0');
    good += cache.load(key, "sm_90a").has_value();
    EXPECT_TRUE(cache.lock(key, std::chrono::seconds(1)).held());
  }
  EXPECT_GT(good, 0);
  EXPECT_EQ(cache.bad_entries(), 0);
}

}  // namespace
}  // namespace tensorcraft::jit
