// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <memory>

namespace tensorcraft {

// FirstMade makes its object so if no other way is given.
template <class T>
T* made_by_default() {
  return new T;
}

// An object that is made at its first use and leaked, for functions to keep: `static constinit
// FirstMade<T> one;`. A fork while another thread makes a local static object leaves its guard
// locked, and the child waits for ever. Here no lock is held: threads that come together make one
// each, and one stays. So making an object twice and deleting one must have no effect.
template <class T, auto make = made_by_default<T>>
class FirstMade {
 public:
  constexpr FirstMade() = default;
  FirstMade(const FirstMade&) = delete;

  // The object, made if it is not there yet.
  T& operator*() {
    T* const made = one_.load(std::memory_order_acquire);
    return made ? *made : publish();
  }
  // Likewise.
  T* operator->() { return &**this; }

 private:
  T& publish() {
    std::unique_ptr<T> own(make());
    T* first = nullptr;
    if (one_.compare_exchange_strong(first, own.get(), std::memory_order_acq_rel))
      return *own.release();
    return *first;
  }

  std::atomic<T*> one_ = nullptr;
};

}  // namespace tensorcraft
