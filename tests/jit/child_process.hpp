// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/jit/test_rung.hpp"

#include <gtest/gtest.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

extern char** environ;

// This program again as a process of its own, for what happens once a process: it runs one test,
// finds a folder in its environment and leaves a report there.
namespace tensorcraft::test {

constexpr const char* kChildFolder = "TC_TEST_JIT_FOLDER";

inline pid_t start_child(const std::string& test) {
  std::string program = "jit_tests", filter = "--gtest_filter=" + test;
  char* arguments[] = {program.data(), filter.data(), nullptr};
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  return child;
}

inline std::string report_file(const std::string& folder, pid_t child) {
  return folder + "/report-" + std::to_string(child);
}

// Called by the child.
inline void report(const std::string& folder, const std::string& text) {
  write_file(report_file(folder, getpid()), text);
}

// The report of a child once it has ended well.
inline std::string report_of(pid_t child, const std::string& folder) {
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::string file = report_file(folder, child);
  EXPECT_TRUE(std::filesystem::exists(file));
  return read_file(file);
}

inline bool opened_nvrtc() {
  return read_file("/proc/self/maps").find("libnvrtc") != std::string::npos;
}

}  // namespace tensorcraft::test
