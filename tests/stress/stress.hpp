// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tests/jit/test_rung.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

// Many processes on one cache. A child is a fork: the parent never opens a compiler or a driver
// before it forks, so a child starts as a fresh process does.
namespace tensorcraft::test {

// The processes of this program use the fake compiler, or the machine's if the environment asks for
// it; set before the configuration is read.
inline bool uses_real_compiler() { return std::getenv("TC_TEST_REAL_NVRTC") != nullptr; }
inline const int kCompilerIsSet =
    uses_real_compiler() ? 0 : setenv("TENSORCRAFT_NVRTC", TC_FAKE_NVRTC, 1);
// The cache folder of the process, so that none of this reaches the user's. A child that ends in
// exit() leaves it to the parent.
class ProcessCache {
 public:
  ProcessCache() { setenv("TENSORCRAFT_CACHE_DIR", folder_->path().c_str(), 1); }
  ~ProcessCache() {
    if (getpid() == owner_) delete folder_;
  }

 private:
  const pid_t owner_ = getpid();
  const TemporaryFolder* const folder_ = new TemporaryFolder;
};
inline const ProcessCache kProcessCache;

// How often a stress test repeats what it does: a tenth, or less, in the usual run.
inline int repeats(int usual, int full) { return std::getenv("TC_TEST_FULL") ? full : usual; }

class Child {
 public:
  // Runs `work` with its standard error in `log`; its result is the exit code.
  Child(const std::string& log, const std::function<int()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(file, STDERR_FILENO);
    int code = 255;
    try {
      code = work();
    } catch (const std::exception& error) {
      dprintf(STDERR_FILENO, "exception: %s\n", error.what());
    }
    _exit(code);
  }
  // The exit code; -1 if it died of a signal or had to be killed as it did not end in time.
  int wait(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return kill_now(), -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill_now() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Asked in a child, so that this process opens none.
inline bool has_compiler(const std::string& log) {
  return Child(log, [] { return cuda::nvrtc_available() ? 0 : 1; }).wait() == 0;
}

// Lets children start together.
class Gate {
 public:
  Gate() {
    if (pipe(ends_) != 0) abort();
  }
  ~Gate() { open_now(); }
  void pass() {  // in a child
    close(ends_[1]);
    char byte;
    while (read(ends_[0], &byte, 1) < 0) {
    }
  }
  void open_now() {  // in the parent
    for (int& end : ends_) {
      if (end >= 0) close(end);
      end = -1;
    }
  }

 private:
  int ends_[2];
};

inline int count_of(const std::string& text, const std::string& words) {
  int count = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

}  // namespace tensorcraft::test
