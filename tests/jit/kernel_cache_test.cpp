// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/kernel_cache.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/core/error.hpp"
#include "tests/jit/test_rung.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

const std::string kKeyA(64, 'a'), kKeyB(64, 'b'), kKeyC(64, 'c');

CacheEntry entry_of(const std::string& signature, size_t image_bytes = 500) {
  return {.signature = signature,
          .arch = "sm_90a",
          .options = "--std=c++20",
          .image = std::string(image_bytes, '\x7f'),
          .log = "ptxas info",
          .created = 1700000000,
          .milliseconds = 12.5};
}

class KernelCacheTest : public testing::Test {
 protected:
  void store(const std::string& key, const std::string& signature, int minutes_ago) {
    ASSERT_TRUE(DiskCache(folder_).store(key, entry_of(signature)));
    fs::last_write_time(file_of(key),
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes_ago));
  }
  std::string file_of(const std::string& key) const { return folder_ + "/" + entry_file(key); }

  TemporaryFolder root_;
  std::string folder_ = root_.file("cache");
  KernelCache cache_{folder_, 1 << 20};
};

TEST_F(KernelCacheTest, IsEmptyWhereThereIsNoFolderYet) {
  const CacheStat stat = cache_.stat();
  EXPECT_EQ(stat.folder, folder_);
  EXPECT_EQ(stat.problem, "");
  EXPECT_EQ(stat.entries + stat.bytes + stat.temporary_files, 0u);
  EXPECT_EQ(stat.limit_bytes, size_t(1) << 20);
  EXPECT_TRUE(cache_.list().empty());
  EXPECT_EQ(cache_.verify().good, 0u);
  EXPECT_EQ(cache_.clear(), 0u);
  EXPECT_FALSE(fs::exists(folder_)) << "looking makes no folder";
}

TEST_F(KernelCacheTest, ExportsWhatARunNoted) {
  store(kKeyA, "one", 0);
  store(kKeyB, "two", 0);
  const std::string record = root_.file("kernels.txt");
  test::write_file(record, join(kKeyB, " two\n", kKeyB, " two\n"));
  EXPECT_EQ(cache_.export_bundle(root_.file("bundle"), recorded_in(record)), 1u);
  test::write_file(record, "not a key\n");
  test::expect_error_with(ErrorKind::value, "kernels.txt:1: it is no line of a kernel record",
                          [&] { recorded_in(record); });
  test::expect_error_with(ErrorKind::not_found, "cannot be read",
                          [&] { recorded_in(root_.file("missing")); });
  test::expect_error_with(ErrorKind::not_found, "is a folder", [&] { recorded_in(root_.path()); });
}

TEST_F(KernelCacheTest, SaysWhyAFolderIsNotUsed) {
  fs::create_directory(folder_);
  fs::permissions(folder_, fs::perms::all);
  EXPECT_EQ(cache_.stat().problem, "has another owner or is writable for others");
  EXPECT_NE(KernelCache("", 0).stat().problem.find("no home"), std::string::npos);
}

TEST_F(KernelCacheTest, CountsFilesAndWhatIsBeingWritten) {
  store(kKeyA, "one", 0);
  store(kKeyB, "two", 0);
  test::write_file(folder_ + "/tmp-1", "half");
  const CacheStat stat = cache_.stat();
  EXPECT_EQ(stat.entries, 2u);
  EXPECT_EQ(stat.bytes, fs::file_size(file_of(kKeyA)) + fs::file_size(file_of(kKeyB)));
  EXPECT_EQ(stat.temporary_files, 1u);
}

TEST_F(KernelCacheTest, ListsTheEntryUsedLastFirstAndMarksNone) {
  store(kKeyA, "old", 30);
  store(kKeyB, "new", 5);
  test::write_file(file_of(kKeyC), "not an entry");
  for (int repeat = 0; repeat < 2; ++repeat) {
    const std::vector<CacheItem> items = cache_.list();
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(items[0].key, kKeyB);
    EXPECT_EQ(items[0].signature, "new");
    EXPECT_EQ(items[0].arch, "sm_90a");
    EXPECT_EQ(items[0].bytes, fs::file_size(file_of(kKeyB)));
    EXPECT_EQ(items[0].created, 1700000000);
    EXPECT_EQ(items[0].compile_ms, 12.5);
    EXPECT_EQ(items[1].key, kKeyA);
    EXPECT_NEAR(double(items[0].used - items[1].used), 25 * 60, 2);
  }
}

TEST_F(KernelCacheTest, VerifyRemovesWhatIsDamagedOrForeignAndNothingElse) {
  store(kKeyA, "good", 0);
  store(kKeyB, "damaged", 0);
  std::string bytes = test::read_file(file_of(kKeyB));
  bytes[bytes.size() / 2] ^= 1;
  test::write_file(file_of(kKeyB), bytes);
  fs::copy_file(file_of(kKeyA), file_of(kKeyC));  // under another key's name
  test::write_file(folder_ + "/notes.txt", "not ours to remove");
  const CacheCheck check = cache_.verify();
  EXPECT_EQ(check.good, 1u);
  EXPECT_EQ(check.removed.size(), 2u);
  EXPECT_TRUE(fs::exists(file_of(kKeyA)));
  EXPECT_FALSE(fs::exists(file_of(kKeyB)));
  EXPECT_FALSE(fs::exists(file_of(kKeyC)));
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt"));
  EXPECT_EQ(cache_.verify().removed.size(), 0u);
}

TEST_F(KernelCacheTest, ClearRemovesEntriesAndLeavesLocks) {
  store(kKeyA, "one", 0);
  {
    const auto lock = DiskCache(folder_).lock(kKeyA, std::chrono::seconds(1));
  }
  test::write_file(folder_ + "/tmp-1", "of a killed process");
  fs::last_write_time(folder_ + "/tmp-1",
                      fs::file_time_type::clock::now() - std::chrono::minutes(2));
  EXPECT_EQ(cache_.clear(), 1u);
  EXPECT_EQ(cache_.stat().entries, 0u);
  EXPECT_EQ(cache_.stat().temporary_files, 0u);
  EXPECT_TRUE(fs::exists(folder_ + "/lock-aa")) << "removing a lock that is waited for is a race";
}

TEST(ProcessCache, IsTheFolderOfTheConfiguration) {
  DiskCache(config().cache_dir).store(kKeyA, entry_of("one"));
  const CacheStat stat = cache_stat();
  EXPECT_EQ(stat.folder, config().cache_dir);
  EXPECT_EQ(int64_t(stat.limit_bytes), config().cache_limit_bytes);
  EXPECT_EQ(cache_list().size(), stat.entries);
  EXPECT_EQ(cache_verify().good, stat.entries);
  const TemporaryFolder root;
  EXPECT_EQ(export_bundle(root.file("bundle")), stat.entries);
  EXPECT_EQ(cache_clear(), stat.entries);
  EXPECT_EQ(import_bundle(root.file("bundle")).imported, stat.entries);
}

}  // namespace
}  // namespace tensorcraft::jit
