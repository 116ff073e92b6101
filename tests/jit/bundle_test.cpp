// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/jit/cache.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tensorcraft/jit/toolchain.hpp"
#include "tests/jit/test_rung.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;

const std::string kMemo = encode_memo({"", 0, 0, {{13, 0}, {80, 90}}});

std::string key_of(int number) {
  std::string key = std::to_string(number);
  key.resize(64, '0');
  return key;
}

CacheEntry entry_of(int number) {
  return {.signature = "kernel_" + std::to_string(number),
          .arch = number % 2 ? "sm_80" : "sm_90a",
          .image = std::string(size_t(100 + number), char('A' + number))};
}

class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    DiskCache disk(source_);
    for (int i = 1; i <= kEntries; ++i) ASSERT_TRUE(disk.store(key_of(i), entry_of(i)));
    ASSERT_TRUE(record_toolchain(disk.folder(), kMemo));
  }
  std::string text() const { return test::read_file(file_); }
  // The folder's files but for locks.
  static size_t files_in(const std::string& folder) {
    size_t count = 0;
    if (!fs::exists(folder)) return 0;
    for (const auto& file : fs::directory_iterator(folder))
      count += !file.path().filename().string().starts_with("lock-");
    return count;
  }

  static constexpr int kEntries = 4;
  TemporaryFolder root_;
  std::string source_ = root_.file("source"), target_ = root_.file("target"),
              file_ = root_.file("bundle");
  KernelCache from_{source_, 1 << 20}, to_{target_, 1 << 20};
};

TEST_F(BundleTest, CarriesEntriesAndTheirCompilerToAnotherFolder) {
  EXPECT_EQ(from_.export_bundle(file_), size_t(kEntries));
  const BundleImport first = to_.import_bundle(file_);
  EXPECT_EQ(first.imported, size_t(kEntries));
  EXPECT_EQ(first.already_there, 0u);
  DiskCache disk(target_);
  for (int i = 1; i <= kEntries; ++i) {
    const auto entry = disk.load(key_of(i), entry_of(i).arch);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->image, entry_of(i).image);
  }
  EXPECT_EQ(recorded_toolchains(disk.folder()), std::vector<std::string>{kMemo});
  struct stat status{};
  stat((target_ + "/" + entry_file(key_of(1))).c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const BundleImport again = to_.import_bundle(file_);
  EXPECT_EQ(again.imported, 0u);
  EXPECT_EQ(again.already_there, size_t(kEntries));
}

TEST_F(BundleTest, KeepsWhatTheFilterKeeps) {
  const auto only_80 = [](const CacheItem& item) { return item.arch == "sm_80"; };
  EXPECT_EQ(from_.export_bundle(file_, only_80), 2u);
  EXPECT_EQ(to_.import_bundle(file_).imported, 2u);
  for (const CacheItem& item : to_.list()) EXPECT_EQ(item.arch, "sm_80");
  EXPECT_THROW(from_.export_bundle(file_, [](const CacheItem&) { return false; }), Error);
}

TEST_F(BundleTest, HoldsNoPathAndNoDamagedEntry) {
  test::write_file(source_ + "/" + entry_file(key_of(1)), "damaged");
  EXPECT_EQ(from_.export_bundle(file_), size_t(kEntries - 1));
  EXPECT_EQ(text().find(root_.path()), std::string::npos);
  EXPECT_EQ(text().find(".kernel"), std::string::npos);
}

TEST_F(BundleTest, IsTheSameFileForTheSameEntries) {
  // The order is that of use, so it is made equal.
  const auto then = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (int i = 1; i <= kEntries; ++i)
    fs::last_write_time(source_ + "/" + entry_file(key_of(i)), then + std::chrono::seconds(i));
  from_.export_bundle(file_);
  const std::string first = text();
  from_.export_bundle(file_);
  EXPECT_EQ(text(), first);
}

TEST_F(BundleTest, IsRefusedWholeForAnyFlippedBitAndAnyTruncation) {
  from_.export_bundle(file_);
  const std::string good = text();
  const auto expect_refused = [&](const std::string& bytes) {
    test::write_file(file_, bytes);
    expect_error(
        ErrorKind::value, [&] { to_.import_bundle(file_); },
        "kernel bundle " + file_ +
            " is damaged or was not written by this version of the library; nothing was "
            "imported");
  };
  for (size_t byte = 0; byte < good.size(); byte += 7) {
    std::string damaged = good;
    damaged[byte] ^= char(1 << byte % 8);
    expect_refused(damaged);
    expect_refused(good.substr(0, byte));
  }
  expect_refused(good + good);
  EXPECT_EQ(files_in(target_), 0u);
}

// The hash says that a file is whole, not that it is honest: each part is checked by itself.
TEST_F(BundleTest, IsRefusedWholeWhereAPartIsForgedAndTheHashIsRight) {
  from_.export_bundle(file_);
  const std::string good = text();
  const auto forged = [&](std::string body) {
    body.resize(body.size() - sizeof(Hash128));
    return body;
  };
  const auto sealed = [](std::string body) {
    const Hash128 hash = xxh3_128(body);
    return body.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  };
  ASSERT_EQ(sealed(forged(good)), good);
  std::string climbing = forged(good);  // a key is a file name
  climbing.replace(climbing.find(key_of(2)), 9, "../../../");
  std::string damaged = forged(good);
  damaged[damaged.find("CCCCCC")] = 'X';
  std::string more_entries = forged(good), long_record = forged(good);
  more_entries[24] = 5;
  long_record[32 + 7] = '\x7f';
  for (const std::string& body : {climbing, damaged, more_entries, long_record}) {
    test::write_file(file_, sealed(body));
    EXPECT_THROW(to_.import_bundle(file_), Error);
  }
  EXPECT_EQ(files_in(target_), 0u);
}

TEST_F(BundleTest, LeavesTheFolderAsItWasWhereOneEntryCannotBePublished) {
  from_.export_bundle(file_);
  fs::create_directories(target_ + "/" + entry_file(key_of(3)) + "/in_the_way");
  fs::permissions(target_, fs::perms::owner_all);
  EXPECT_THROW(to_.import_bundle(file_), Error);
  EXPECT_EQ(files_in(target_), 1u) << "the folder in the way alone";
}

TEST_F(BundleTest, ReplacesADamagedEntry) {
  from_.export_bundle(file_);
  to_.import_bundle(file_);
  test::write_file(target_ + "/" + entry_file(key_of(2)), "damaged");
  EXPECT_EQ(to_.import_bundle(file_).imported, 1u);
  EXPECT_EQ(to_.verify().removed.size(), 0u);
}

TEST_F(BundleTest, SaysWhatIsWrongWithFilesAndFolders) {
  from_.export_bundle(file_);
  expect_error(
      ErrorKind::io, [&] { to_.import_bundle(root_.file("none")); },
      "kernel bundle " + root_.file("none") + " cannot be read: No such file or directory");
  expect_error(
      ErrorKind::io, [&] { from_.export_bundle("/proc/none/bundle"); },
      "kernel bundle /proc/none/bundle cannot be written: No such file or directory");
  expect_error(
      ErrorKind::not_found, [&] { to_.export_bundle(file_); },
      "kernel cache " + target_ +
          " holds no entry for the bundle; compile the kernels first, as `warmup` does");
  EXPECT_THROW(KernelCache(target_, 1000).import_bundle(file_), Error) << "larger than the limit";
  fs::create_directory_symlink(source_, target_);
  expect_error(
      ErrorKind::io, [&] { to_.import_bundle(file_); },
      "kernel cache " + target_ +
          " cannot take a bundle: is a symbolic link or no folder; nothing was imported");
}

}  // namespace
}  // namespace tensorcraft::jit
