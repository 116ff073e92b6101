// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/fork.hpp"

#include "tensorcraft/core/error.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tensorcraft {

class ForkRegistry {
 public:
  // Leaked: objects with static storage may go after every destructor here ran. No child of a fork
  // waits for it, as it is made while the library is loaded.
  static ForkRegistry& of_process() {
    static auto* const one = [] {
      auto* const made = new ForkRegistry;
      pthread_atfork([] { of_process().before(); }, [] { of_process().in_parent(); },
                     [] { of_process().in_child(); });
      return made;
    }();
    return *one;
  }

  void add(AtFork& one) {
    const std::lock_guard lock(mutex_);
    one.next_ = first_;
    if (first_) first_->previous_ = &one;
    first_ = &one;
  }
  void remove(AtFork& one) {
    const std::lock_guard lock(mutex_);
    (one.previous_ ? one.previous_->next_ : first_) = one.next_;
    if (one.next_) one.next_->previous_ = one.previous_;
  }

 private:
  // Nothing is held while it waits, so whatever the order in which other threads nest what they
  // hold, they come to an end.
  void before() {
    constexpr std::chrono::seconds kPatience{10};
    constexpr std::chrono::microseconds kLongestPause{1000};
    std::chrono::microseconds pause{20};
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (bool is_last = false; !hold_all(is_last); pause = std::min(2 * pause, kLongestPause)) {
      is_last = std::chrono::steady_clock::now() >= end;
      std::this_thread::sleep_for(pause);
    }
  }

  // All and the registry, or nothing; `or_some`: those that can be.
  bool hold_all(bool or_some) {
    mutex_.lock();
    for (AtFork* one = first_; one; one = one->next_) {
      one->is_held_ = one->try_hold();
      if (one->is_held_ || or_some) continue;
      let_go();
      return false;
    }
    return true;
  }

  void let_go() {
    for (AtFork* one = first_; one; one = one->next_)
      if (std::exchange(one->is_held_, false)) one->let_go();
    mutex_.unlock();
  }

  void in_parent() { let_go(); }

  void in_child() {
    mutex_.unlock();  // this thread locked it in before()
    for (AtFork* one = first_; one;) {
      AtFork* const next = one->next_;
      if (std::exchange(one->is_held_, false)) one->begin_in_child();
      one = next;
    }
  }

  std::mutex mutex_;  // guards the list
  AtFork* first_ = nullptr;
};

[[maybe_unused]] static ForkRegistry& made_at_load = ForkRegistry::of_process();

AtFork::AtFork() { ForkRegistry::of_process().add(*this); }
AtFork::~AtFork() { ForkRegistry::of_process().remove(*this); }

void fail_in_forked_child(std::string_view object) {
  fail(ErrorKind::unsupported, object,
       ": it was made before this process was forked, and its threads stayed behind; make another "
       "one here");
}

}  // namespace tensorcraft
