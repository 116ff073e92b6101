// SPDX-License-Identifier: Apache-2.0
// A process is killed at any moment of telling what it does, or cannot tell it for a while.
#include "tensorcraft/runtime/status/status.hpp"
#include "tests/support/temporary_folder.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace tensorcraft::status {
namespace {

// Before the configuration is read, once a process; the children inherit it.
const test::TemporaryFolder kCache;
const int kIsSet = setenv("TENSORCRAFT_STATUS", "1", 1) +
                   setenv("TENSORCRAFT_CACHE_DIR", kCache.path().c_str(), 1);

// Tells much, so that writing it takes a while.
std::vector<Item> many_items() {
  std::vector<Item> items;
  for (int i = 0; i < 500; ++i) items.push_back({"memory", std::to_string(i), {{"used_bytes", i}}});
  return items;
}

pid_t start_telling() {
  const pid_t child = fork();
  if (child != 0) return child;
  const Source source(many_items);
  for (;;) pause();
}

void wait_until_told(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const std::string file = std::to_string(child) + ".json";
  while (!std::filesystem::exists(folder() + "/" + file)) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void kill_now(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(StatusKill, LeavesNothingThatTheNextReaderMinds) {
  ASSERT_EQ(kIsSet, 0);
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const pid_t child = start_telling();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    kill_now(child);
  }
  const pid_t alive = start_telling();
  wait_until_told(alive);
  const std::vector<Process> all = read_all(folder());
  kill_now(alive);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].pid, alive);
  EXPECT_EQ(all[0].items.size(), 500u);
  EXPECT_TRUE(read_all(folder()).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

// The child's standard error says when it could not write.
TEST(StatusKill, WhatCannotBeWrittenIsTriedAgain) {
  int log[2];
  ASSERT_EQ(pipe(log), 0);
  const int own = dup(STDERR_FILENO);
  dup2(log[1], STDERR_FILENO);
  const pid_t child = start_telling();
  dup2(own, STDERR_FILENO);
  close(log[1]);
  wait_until_told(child);
  const std::string file = folder() + "/" + std::to_string(child) + ".json",
                    blocked = file + ".new";
  std::error_code ignored;  // while it is just being written
  while (!std::filesystem::is_directory(blocked))
    std::filesystem::create_directory(blocked, ignored);
  std::filesystem::remove(file);
  std::string line(200, ' ');
  line.resize(size_t(std::max<ssize_t>(read(log[0], line.data(), line.size()), 0)));
  EXPECT_NE(line.find("cannot be written"), line.npos) << line;
  std::filesystem::remove(blocked);
  wait_until_told(child);
  kill_now(child);
  close(log[0]);
  close(own);
}

}  // namespace
}  // namespace tensorcraft::status
