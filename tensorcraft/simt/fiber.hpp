// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

// Cooperative threads of execution on one OS thread, with AddressSanitizer told of every switch.
namespace tensorcraft::simt {

// A stack and the point where its code is suspended. The code that calls switch_fiber first is a
// Fiber too: one without a stack of ours.
struct Fiber {
  void* context = nullptr;
  const void* stack = nullptr;  // its lowest address
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  Fiber* next = nullptr;       // the fiber it switched to last
};

using FiberEntry = void (*)(void* argument);
// Makes a fiber that runs entry(argument) when it is first switched to; entry must not return.
void prepare_fiber(Fiber& fiber, FiberEntry entry, void* argument);
// Suspends `from`, the running fiber, and runs `to`; returns when something switches back.
void switch_fiber(Fiber& from, Fiber& to);
// Switches likewise from a fiber that never runs again.
void leave_fiber(Fiber& from, Fiber& to);

// `count` stacks with a guard page below each, so that an overflow is a segmentation fault and not
// a write into the neighbour.
class Stacks {
 public:
  Stacks(size_t count, size_t bytes);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  size_t count() const { return count_; }
  size_t bytes() const { return bytes_; }  // of each
  char* at(size_t i) const;
  // Ready for new fibers.
  void reset();

 private:
  size_t count_, bytes_, pitch_;
  char* memory_;
};

// Stacks are kept between launches: mapping them costs a system call for each.
std::unique_ptr<Stacks> borrow_stacks(size_t count, size_t bytes);
void return_stacks(std::unique_ptr<Stacks> stacks);

}  // namespace tensorcraft::simt
