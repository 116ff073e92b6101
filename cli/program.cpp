// SPDX-License-Identifier: Apache-2.0
#include "cli/program.hpp"

#include "tensorcraft/core/error.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace tensorcraft::cli {
namespace {

pid_t start(const std::vector<std::string>& program) {
  std::vector<char*> words;
  words.reserve(program.size() + 1);
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (const int problem = ::posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ))
    fail(ErrorKind::not_found, program[0], " cannot be started: ", std::strerror(problem));
  return child;
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  const pid_t child = start(words);
  std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, SIG_DFL);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tensorcraft::cli
