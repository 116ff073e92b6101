// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

// The one registry of what fork() must care for. A child has the thread that forked and no other,
// so what another one held stays held there, and what it had half done stays so.
namespace tensorcraft {

// Something that forks care for from its construction to its destruction.
class AtFork {
 public:
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

 protected:
  AtFork();
  ~AtFork();

 private:
  friend class ForkRegistry;
  // Before a fork: takes it, so that no other thread is inside; false if one is.
  virtual bool try_hold() { return true; }
  // Undoes that, in the parent.
  virtual void let_go() {}
  // Instead of let_go() in the child. It takes no lock.
  virtual void begin_in_child() {}

  AtFork* previous_ = nullptr;
  AtFork* next_ = nullptr;
  bool is_held_ = false;
};

// A mutex that is free in every child, and what it guards is whole there: fork() waits until no
// other thread holds it. The order in which threads nest such mutexes does not matter to a fork.
// Who holds one waits for nothing that needs the forking thread, as the GIL: after ten seconds the
// fork is made without it, and in the child it stays locked.
template <class Mutex>
class ForkSafe final : public Mutex, private AtFork {
 private:
  bool try_hold() override { return this->try_lock(); }
  void let_go() override { this->unlock(); }
  // Not unlock(): waiting threads are not there, and a shared mutex knows who locked it.
  void begin_in_child() override { std::construct_at(static_cast<Mutex*>(this)); }
};
// The usual one.
using ForkSafeMutex = ForkSafe<std::mutex>;

// InForkedChild calls it: a base in front of AtFork, so that it is there as long as forks care.
struct FunctionOfChild {
  const std::function<void()> function;  // never empty
};

// A child calls the function before fork() returns there, such as to forget threads. A
// ForkSafeMutex, which it does not lock, guards the data that the function touches.
class InForkedChild final : private FunctionOfChild, private AtFork {
 public:
  // Asks for it until the object goes.
  explicit InForkedChild(std::function<void()> f) : FunctionOfChild{std::move(f)} {}

 private:
  void begin_in_child() override { function(); }
};

// Refuses, with kind unsupported, to use in a child an object whose threads stayed in its parent.
[[noreturn]] void fail_in_forked_child(std::string_view object);

}  // namespace tensorcraft
