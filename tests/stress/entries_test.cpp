// SPDX-License-Identifier: Apache-2.0
// Entries that are not what they should be are misses and are built again; and the folder stays
// within its size, however many write.
#include "tensorcraft/jit/compiler.hpp"
#include "tensorcraft/jit/kernel_cache.hpp"
#include "tests/stress/stress.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <random>

namespace tensorcraft::jit {
namespace {

namespace fs = std::filesystem;
using test::Child;
using test::scale_key;
using test::TemporaryFolder;

constexpr const char* kArch = "sm_90a";

// Puts something that is not the right entry under its name.
class Spoiler {
 public:
  Spoiler(std::string folder, std::string key, std::string good)
      : path_(folder + "/" + entry_file(key)), good_(std::move(good)) {}

  // Twelve kinds in turn, each with its own random part.
  void spoil(int number) {
    fs::remove_all(path_);
    if (number % 12 < 8)
      test::write_file(path_, bytes(number % 12));
    else
      node(number % 12);
  }

 private:
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  std::string bytes(int kind) {
    std::string damaged = good_;
    switch (kind) {
      case 0:  // a flipped bit
        damaged[below(good_.size())] ^= char(1 << below(8));
        return damaged;
      case 1:  // a lost end
        return good_.substr(0, below(good_.size()));
      case 2:  // a grown end
        return good_ + std::string(1 + below(100), char(below(256)));
      case 3:  // a block of zeros, as a crashed machine leaves
        damaged.replace(below(good_.size()) / 2, good_.size() / 4, good_.size() / 4, '\0');
        return damaged;
      case 4:  // two parts exchanged
        return good_.substr(good_.size() / 2) + good_.substr(0, good_.size() / 2);
      case 5:  // the entry of another key, whole
        return encode_entry(other(kArch), std::string(64, 'a'));
      case 6:  // of this key, for another architecture
        return encode_entry(other("sm_90"), fs::path(path_).stem().string());
      default: {  // no entry at all
        std::string noise(below(3000), '\0');
        for (char& c : noise) c = char(below(256));
        return noise;
      }
    }
  }
  void node(int kind) {
    switch (kind) {
      case 8:
        mkfifo(path_.c_str(), 0600);
        return;
      case 9:  // a link to a good file
        test::write_file(path_ + ".good", good_);
        fs::create_symlink(path_ + ".good", path_);
        return;
      case 10:  // one file under two names
        test::write_file(path_ + ".good", good_);
        fs::remove(path_ + ".twin");
        fs::create_hard_link(path_ + ".good", path_);
        return;
      default:  // larger than memory
        test::write_file(path_, good_);
        if (truncate(path_.c_str(), off_t(1) << 40) != 0) fs::create_directory(path_);
    }
  }
  static CacheEntry other(const std::string& arch) {
    return {.signature = "other",
            .arch = arch,
            .image =
                "\x7f"
                "ELF other"};
  }

  const std::string path_, good_;
  std::mt19937 random_{11};
};

class Entries : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(test::kCompilerIsSet, 0);
    test::add_scale_header();
  }
  TemporaryFolder root_;
  std::string folder_ = root_.file("cache"), log_ = root_.file("log");
};

TEST_F(Entries, ThatAreBadAreMissesAndBuiltAgain) {
  const int count = test::repeats(1200, 12000);
  const auto work = [&] {
    Compiler compiler(folder_);
    const Compiler::Result first = compiler.build(scale_key(), kArch);
    const std::string file = folder_ + "/" + entry_file(first.program.key);
    Spoiler spoiler(folder_, first.program.key, test::read_file(file));
    for (int i = 0; i < count; ++i) {
      spoiler.spoil(i);
      const Compiler::Result built = compiler.build(scale_key(), kArch);
      if (built.from_disk || built.entry.image != first.entry.image) return 2;
      if (!compiler.build(scale_key(), kArch).from_disk) return 3;
    }
    return compiler.compiles() == count + 1 && compiler.bad_entries() == count ? 0 : 4;
  };
  EXPECT_EQ(Child(log_, work).wait(std::chrono::minutes(10)), 0) << test::read_file(log_);
  EXPECT_EQ(test::read_file(log_), "") << "a bad entry is no reason for a warning";
}

std::string key_of(int writer, int number) {
  std::string key = std::to_string(writer * 100000 + number);
  key.resize(64, '0');
  return key;
}

TEST_F(Entries, StayWithinTheLimitWhileEightProcessesWrite) {
  constexpr size_t kLimit = 1 << 20, kImage = 4000;
  const int inserts = test::repeats(250, 1250);
  std::vector<Child> writers;
  for (int writer = 0; writer < 8; ++writer) {
    writers.emplace_back(log_, [&, writer] {
      DiskCache disk(folder_, kLimit);
      int failed = 0;
      for (int i = 0; i < inserts; ++i) {
        failed +=
            !disk.store(key_of(writer, i), {.arch = kArch, .image = std::string(kImage, 'x')});
        disk.load(key_of(9, 0), kArch);  // what is used stays
        if (writer == 0 && i == 0)
          disk.store(key_of(9, 0), {.arch = kArch, .image = std::string(kImage, 'u')});
      }
      return failed ? 1 : int(disk.bad_entries());
    });
  }
  KernelCache cache(folder_, kLimit);
  size_t largest = 0;
  int running = 8;
  while (running > 0) {
    largest = std::max(largest, cache.stat().bytes);
    siginfo_t info{};
    running = 0;
    for (const Child& writer : writers) {
      info.si_pid = 0;
      waitid(P_PID, id_t(writer.pid()), &info, WEXITED | WNOHANG | WNOWAIT);
      running += info.si_pid == 0;
    }
  }
  for (Child& writer : writers) EXPECT_EQ(writer.wait(), 0) << test::read_file(log_);
  EXPECT_LE(largest, kLimit + kImage + 1000);
  EXPECT_GT(cache.stat().bytes, kLimit / 2) << "more was removed than needed";
  EXPECT_EQ(cache.verify().removed.size(), 0u);
  EXPECT_TRUE(DiskCache(folder_, kLimit).load(key_of(9, 0), kArch))
      << "the entry in use was removed";
  RecordProperty("largest", int(largest));
}

}  // namespace
}  // namespace tensorcraft::jit
