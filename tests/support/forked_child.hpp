// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

// ThreadSanitizer allows no new thread in a forked child, nor does it follow mutexes there.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kForksWork = false;
#else
inline constexpr bool kForksWork = true;
#endif

namespace tensorcraft::test {

// Forks a child that returns what `work` returns, a small integer, and gives that. A child that
// hangs is killed by a signal, whose number plus 1000 is the answer.
template <class Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Does the call fail with kind unsupported? For a child, which reports no expectations.
template <class Call>
bool is_unsupported(Call call) {
  try {
    call();
    return false;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::unsupported;
  }
}

}  // namespace tensorcraft::test
