// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

// How a caller ends a long call early, such as Python on Ctrl-C. A check belongs to the thread that
// sets it: only that thread asks it, at steps of its own work that can be left.
namespace tensorcraft {

// Should the work of this thread end?
using InterruptCheck = bool (*)();
// Sets the check of the calling thread and returns the one before; null: none.
InterruptCheck set_interrupt_check(InterruptCheck check);
// Asks the thread's check if it was not asked for 50 ms; its first question comes 50 ms after it
// was set. Fails with kind cancelled if the work should end: outputs are undefined then.
void check_interrupt();

// Waits for a condition variable until `is_over`, which is asked under the lock, or at most so
// long; whether it is over. Every `slice` it is asked anew, and check_interrupt() without the lock:
// if that fails, the lock stays free.
template <class Changed, class Mutex, class Condition>
bool wait_or_interrupt(Changed& changed, std::unique_lock<Mutex>& lock, const Condition& is_over,
                       std::optional<std::chrono::nanoseconds> at_most = {},
                       std::chrono::nanoseconds slice = std::chrono::milliseconds(50)) {
  using Clock = std::chrono::steady_clock;
  const auto end = at_most ? Clock::now() + *at_most : Clock::time_point::max();
  while (!is_over()) {
    const std::chrono::nanoseconds left = end - Clock::now();
    if (left <= left.zero()) return false;
    changed.wait_for(lock, std::min(left, slice));
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  return true;
}

}  // namespace tensorcraft
