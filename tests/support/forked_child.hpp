// SPDX-License-Identifier: Apache-2.0
#pragma once
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

// What a child ends with that is forked here and returns what `work` returns, a small integer. One
// that hangs is killed by a signal, whose number plus 1000 is the answer.
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

}  // namespace tensorcraft::test
