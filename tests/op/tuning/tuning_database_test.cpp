// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/tuning_database.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft::op {
namespace {

using test::expect_error;
using test::expect_error_with;
using test::TemporaryFolder;

// The folder of this program's cache; config() reads it once.
const TemporaryFolder& cache_folder() {
  static const TemporaryFolder folder;
  return folder;
}
const int kFolderIsSet = setenv("TENSORCRAFT_CACHE_DIR", cache_folder().path().c_str(), 1);

TuningKey tuning_key(const std::string& call, const std::string& device = "A GPU") {
  return {device, "gemm", call, "0123456789abcdef"};
}
TunedRow tuned_row(const std::string& call, double us = 2, const std::string& device = "A GPU") {
  return {tuning_key(call, device), {"tma", "tile_m=128", us, 4}, 12, 1'700'000'000};
}

void expect_same(const TunedRow& a, const TunedRow& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.entry, b.entry);
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_EQ(a.measured, b.measured);
}

TEST(TuningDatabase, KeepsResultsAndTrials) {
  const TemporaryFolder folder;
  const std::string path = folder.file("deep/inside/one.tuned");
  {
    TuningDatabase database(path);
    EXPECT_TRUE(database.results().empty());
    database.set_result(tuned_row("a=float32[2,3]"));
    database.set_result(tuned_row("a=float32[2,3] 'quoted' \xc3\xa4"));
    for (const double us : {3.0, 1.0, 2.0})
      database.add_trial(tuning_key("x"), {"naive", "tile_m=" + std::to_string(int(us)), us});
  }
  TuningDatabase again(path);
  ASSERT_EQ(again.results().size(), 2u);
  expect_same(again.result(tuning_key("a=float32[2,3]")).value(), tuned_row("a=float32[2,3]"));
  EXPECT_FALSE(again.result(tuning_key("b")).has_value());
  const std::vector<Trial> trials = again.trials(tuning_key("x"));
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].us, 3) << "in the order in which they were measured";
  EXPECT_EQ(trials[2].config, "tile_m=2");
  again.add_trial(tuning_key("x"), {"naive", "tile_m=2", 9});
  EXPECT_EQ(again.trials(tuning_key("x")).size(), 3u) << "none is repeated";
  again.remove_trials(tuning_key("x"));
  EXPECT_TRUE(again.trials(tuning_key("x")).empty());
  EXPECT_EQ(TuningDatabase::read(path).size(), 2u);
}

TEST(TuningDatabase, ReplacesAResultAndKeepsThoseOfOtherVersions) {
  const TemporaryFolder folder;
  TuningDatabase database(folder.file("one.tuned"));
  database.set_result(tuned_row("a", 2));
  database.set_result(tuned_row("a", 3));
  TunedRow stale = tuned_row("a", 1);
  stale.key.version = "other";
  database.set_result(stale);
  EXPECT_EQ(database.results().size(), 2u);
  EXPECT_EQ(database.result(tuning_key("a"))->entry.us, 3);
}

TEST(TuningDatabase, MergesSoThatTheFasterStaysWhicheverComesFirst) {
  const TemporaryFolder folder;
  TuningDatabase one(folder.file("one.tuned")), two(folder.file("two.tuned"));
  const std::vector<TunedRow> left = {tuned_row("a", 5), tuned_row("b", 1)},
                              right = {tuned_row("a", 4), tuned_row("b", 2), tuned_row("c", 3)};
  EXPECT_EQ(one.merge(left), 2u);
  EXPECT_EQ(one.merge(right), 2u);
  EXPECT_EQ(two.merge(right), 3u);
  EXPECT_EQ(two.merge(left), 1u);
  ASSERT_EQ(one.results().size(), 3u);
  for (size_t i = 0; i < 3; ++i) expect_same(one.results()[i], two.results()[i]);
  EXPECT_EQ(one.result(tuning_key("a"))->entry.us, 4);
  EXPECT_EQ(one.merge(right), 0u);
}

// Runs a function in a process of its own.
template <class Work>
pid_t start_process(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  return child;
}

TEST(TuningDatabase, AWriterThatIsKilledLosesNothingThatItCommitted) {
  const TemporaryFolder folder;
  const std::string path = folder.file("one.tuned");
  std::mt19937 random(1);
  size_t before = 0;
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = start_process([&] {
      TuningDatabase database(path);
      for (size_t i = database.trials(tuning_key("x")).size();; ++i) {
        database.add_trial(tuning_key("x"), {"v", std::to_string(i), double(i + 1)});
        if (write(ends[1], "+", 1) != 1) return;
      }
    });
    close(ends[1]);
    const size_t wanted = random() % 12;
    char byte = 0;
    size_t committed = 0;
    while (committed < wanted && read(ends[0], &byte, 1) == 1) ++committed;
    if (wanted == 0) usleep(useconds_t(random() % 3000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    while (read(ends[0], &byte, 1) == 1) ++committed;
    close(ends[0]);
    const TuningDatabase database(path);
    const std::vector<Trial> trials = database.trials(tuning_key("x"));
    ASSERT_GE(trials.size(), before + committed);
    ASSERT_LE(trials.size(), before + committed + 1) << "one may be committed and not yet told";
    for (size_t i = 0; i < trials.size(); ++i) ASSERT_EQ(trials[i].us, double(i + 1));
    before = trials.size();
  }
}

TEST(TuningDatabase, TwoProcessesWriteIntoOneFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("one.tuned");
  std::vector<pid_t> children;
  for (const std::string name : {"left", "right"})
    children.push_back(start_process([&] {
      TuningDatabase database(path);
      for (int i = 0; i < 40; ++i) {
        database.set_result(tuned_row(name + std::to_string(i)));
        database.add_trial(tuning_key(name), {"v", std::to_string(i), 1});
      }
    }));
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const TuningDatabase database(path);
  EXPECT_EQ(database.results().size(), 80u);
  EXPECT_EQ(database.trials(tuning_key("left")).size(), 40u);
  EXPECT_EQ(database.trials(tuning_key("right")).size(), 40u);
}

void damage_file(const std::string& path, const std::string& how) {
  if (how == "text")
    std::ofstream(path) << "this is no database, and long enough to be seen as one";
  if (how == "cut") std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  if (how != "bytes") return;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(4096);
  file << std::string(4096, '\x5a');
}

TEST(TuningDatabase, SetsADamagedFileAsideAndBeginsAnew) {
  for (const std::string how : {"text", "cut", "bytes"}) {
    const TemporaryFolder folder;
    const std::string path = folder.file("one.tuned");
    {
      TuningDatabase database(path);
      for (int i = 0; i < 40; ++i) database.set_result(tuned_row(std::to_string(i)));
    }
    damage_file(path, how);
    expect_error_with(ErrorKind::io, "one.tuned: ", [&] {
      TuningDatabase refused(path, TuningDatabase::Damaged::refuse);
    });
    EXPECT_FALSE(std::filesystem::exists(path + ".damaged"));
    TuningDatabase database(path);
    EXPECT_TRUE(std::filesystem::exists(path + ".damaged")) << how;
    EXPECT_TRUE(database.results().empty());
    database.set_result(tuned_row("a"));
    EXPECT_EQ(TuningDatabase::read(path).size(), 1u);
  }
}

TEST(TuningDatabase, ReadingNoDatabaseIsAnErrorAndNoFileIsNothing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(TuningDatabase::read(folder.file("none.tuned")).empty());
  EXPECT_TRUE(TuningDatabase::read(folder.write("empty.tuned", "")).empty());
  const std::string text = folder.write("text.tuned", std::string(5000, 'x'));
  expect_error(
      ErrorKind::io, [&] { TuningDatabase::read(text); },
      text + ": no database of what is tuned: file is not a database");
  EXPECT_EQ(std::filesystem::file_size(text), 5000u) << "it is not changed";
  expect_error_with(ErrorKind::io, "/proc/none cannot be made: ", [] {
    TuningDatabase nowhere("/proc/none/one.tuned");
  });
  expect_error(
      ErrorKind::io, [] { TuningDatabase nowhere(""); },
      "there is no folder for what is tuned: no home and no cache_dir");
}

TEST(TuningDatabase, ExportsWhatAllDevicesHaveAndImportsItAgain) {
  std::filesystem::remove_all(config().cache_dir + "/tuned");
  const TemporaryFolder folder;
  const std::string file = folder.file("all.tuned");
  expect_error(
      ErrorKind::not_found, [&] { export_tuned(file); },
      "nothing is tuned, so there is nothing to export");
  TuningDatabase(TuningDatabase::path_of("A GPU")).set_result(tuned_row("a", 2));
  TuningDatabase(TuningDatabase::path_of("Another")).set_result(tuned_row("b", 3, "Another"));
  EXPECT_EQ(TuningDatabase::paths().size(), 2u);
  EXPECT_EQ(export_tuned(file), 2u);

  std::filesystem::remove_all(config().cache_dir + "/tuned");
  TuningDatabase(TuningDatabase::path_of("A GPU")).set_result(tuned_row("a", 1));
  const uint64_t before = tuned_generation();
  EXPECT_EQ(import_tuned(file), 1u) << "ours of \"a\" is faster";
  EXPECT_NE(tuned_generation(), before);
  EXPECT_EQ(TuningDatabase(TuningDatabase::path_of("A GPU")).result(tuning_key("a"))->entry.us, 1);
  EXPECT_EQ(TuningDatabase::read(TuningDatabase::path_of("Another")).size(), 1u);
  expect_error_with(ErrorKind::not_found, "/none does not exist",
                    [&] { import_tuned(folder.file("none")); });
  expect_error_with(ErrorKind::io, "/text: no database of what is tuned",
                    [&] { import_tuned(folder.write("text", std::string(5000, 'x'))); });
  const std::string own = folder.write("own.txt", std::string(5000, 'x'));
  expect_error_with(ErrorKind::io, "own.txt: no database", [&] { export_tuned(own); });
  EXPECT_EQ(std::filesystem::file_size(own), 5000u) << "a file of the user's is not replaced";
  std::filesystem::remove_all(config().cache_dir + "/tuned");
}

TEST(TuningDatabase, HasAFileForEachDeviceBelowTheCachesFolder) {
  const std::string one = TuningDatabase::path_of("NVIDIA H100 80GB HBM3"),
                    other = TuningDatabase::path_of("NVIDIA/H100 80GB HBM3");
  EXPECT_EQ(one.find(config().cache_dir + "/tuned/NVIDIA_H100_80GB_HBM3-"), 0u);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace tensorcraft::op
