// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/input_file.hpp"

#include "tests/runtime/safetensors/writer.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

namespace tensorcraft::safetensors {

using test::error_of;
using test::TemporaryFolder;

TEST(InputFile, ReadsAnyPart) {
  const TemporaryFolder folder;
  const InputFile file(folder.write("f", "0123456789"));
  char part[3];
  file.read(part, 3, 7);
  EXPECT_EQ(std::string_view(part, 3), "789");
  EXPECT_EQ(file.size(), 10u);
  EXPECT_NO_THROW(file.check_unchanged());
}

TEST(InputFile, NamesAMissingPath) {
  const auto error = error_of([] { InputFile("/nowhere/f"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_STREQ(error->what(), "safetensors: /nowhere/f: open failed: No such file or directory");
}

TEST(InputFile, RefusesFoldersAndPipesWithoutWaiting) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder.path(), pipe}) {
    const auto error = error_of([&] { InputFile{path}; });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::io);
    EXPECT_EQ(error->what(), "safetensors: " + path + ": not a regular file");
  }
}

TEST(InputFile, SaysHowShortAReadWas) {
  const TemporaryFolder folder;
  const InputFile file(folder.write("f", "0123456789"));
  char part[8];
  const auto error = error_of([&] { file.read(part, 8, 6); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::io);
  EXPECT_EQ(error->what(), "safetensors: " + file.path() +
                               ": 8 bytes at offset 6 were expected, the file gave 4; it was "
                               "truncated while it was read [short_read]");
}

TEST(InputFile, NoticesAFileOfAnotherSizeTimeOrInode) {
  const TemporaryFolder folder;
  const auto change_after_open = [&](auto&& change) {
    const std::string path = folder.write("f", "0123456789");
    const InputFile file(path);
    change(path);
    const auto error = error_of([&] { file.check_unchanged(); });
    return error && error->kind() == ErrorKind::io &&
           std::string_view(error->what()).ends_with("[changed_while_reading]");
  };
  EXPECT_FALSE(change_after_open([](const std::string&) {}));
  EXPECT_TRUE(change_after_open([](auto& path) { std::filesystem::resize_file(path, 9); }));
  EXPECT_TRUE(change_after_open([](auto& path) { std::filesystem::resize_file(path, 11); }));
  EXPECT_TRUE(change_after_open([](auto& path) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }));
  EXPECT_TRUE(change_after_open(
      [&](auto& path) { std::filesystem::rename(folder.write("other", "0123456789"), path); }));
  EXPECT_TRUE(change_after_open([](auto& path) { std::filesystem::remove(path); }));
}

}  // namespace tensorcraft::safetensors
