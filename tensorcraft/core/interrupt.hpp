// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace tensorcraft
