// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/status/status.hpp"

#include "tests/support/temporary_folder.hpp"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace tensorcraft::status {
namespace {

// No process of the system has this number.
constexpr const char *kDead = "999999999.json", *kDeadWhileWriting = "999999999.json.new";

TEST(Status, ReadsTheFilesOfLiveProcessesAndRemovesOthers) {
  const test::TemporaryFolder folder;
  folder.write(std::to_string(getpid()) + ".json",
               R"({"pid": 12, "program": "serve", "begun": 1.5, "written": 2.5, "items":)"
               R"([{"kind": "memory", "name": "cuda:0", "numbers": {"used_bytes": 3}}]})");
  folder.write(kDead, "{}");
  folder.write(kDeadWhileWriting, R"({"pid": 9)");
  folder.write(std::to_string(getpid()) + ".json.new", R"({"pid": 1)");
  folder.write("notes.txt", "not ours");
  const std::vector<Process> all = read_all(folder.path());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].pid, 12);
  EXPECT_EQ(all[0].program, "serve");
  EXPECT_EQ(all[0].written - all[0].begun, 1.0);
  ASSERT_EQ(all[0].items.size(), 1u);
  EXPECT_EQ(all[0].items[0].name, "cuda:0");
  EXPECT_EQ(all[0].items[0].numbers[0], std::pair(std::string("used_bytes"), 3.0));
  EXPECT_FALSE(std::filesystem::exists(folder.file(kDead)));
  EXPECT_FALSE(std::filesystem::exists(folder.file(kDeadWhileWriting)));
  EXPECT_TRUE(std::filesystem::exists(folder.file(std::to_string(getpid()) + ".json.new")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("notes.txt")));
}

TEST(Status, LeavesOutWhatItCannotRead) {
  const test::TemporaryFolder folder;
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), deep, std::string(R"({"pid": "x"})"),
        std::string(R"({"pid": 1, "items": 3})")}) {
    folder.write(std::to_string(getpid()) + ".json", text);
    EXPECT_TRUE(read_all(folder.path()).empty()) << text;
  }
  EXPECT_TRUE(read_all("/no/such/folder").empty());
}

TEST(Status, IsInTheCacheFolder) {
  EXPECT_EQ(folder(parse_config([](const char*) -> const char* { return nullptr; })), "");
  Config config;
  config.cache_dir = "/cache";
  EXPECT_EQ(folder(config), "/cache/status");
}

}  // namespace
}  // namespace tensorcraft::status
