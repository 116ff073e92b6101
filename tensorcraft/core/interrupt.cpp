// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/interrupt.hpp"

#include "tensorcraft/core/error.hpp"

#include <chrono>
#include <utility>

namespace tensorcraft {
namespace {

using Clock = std::chrono::steady_clock;
// Short for a person, long beside what a question costs: Python's takes the GIL.
constexpr std::chrono::milliseconds kInterval{50};

thread_local constinit InterruptCheck current = nullptr;
thread_local Clock::time_point next;  // the epoch: not known yet

}  // namespace

InterruptCheck set_interrupt_check(InterruptCheck check) {
  next = {};
  return std::exchange(current, check);
}

void check_interrupt() {
  if (!current) return;
  const Clock::time_point now = Clock::now();
  if (next == Clock::time_point()) next = now + kInterval;
  if (now < next) return;
  next = now + kInterval;
  if (current()) fail(ErrorKind::cancelled, "the call was interrupted; its outputs are undefined");
}

}  // namespace tensorcraft
