// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/fork.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace tensorcraft::jit {

// Long work that one thread does for all that ask for its key meanwhile. No lock is held that a
// fork waits for; a child starts without the flights of its parent's threads.
template <class Key>
class Flights {
 public:
  // The work: while one lives, others of its key wait in the constructor.
  class Flight {
   public:
    Flight(Flights& all, Key key) : all_(all), key_(std::move(key)), alone_(all_.join(key_)) {
      alone_->lock();
    }
    ~Flight() {
      alone_->unlock();
      all_.leave(key_, std::move(alone_));
    }
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;

   private:
    Flights& all_;
    const Key key_;
    std::shared_ptr<std::mutex> alone_;
  };

 private:
  std::shared_ptr<std::mutex> join(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto& known = all_[key];
    if (!known) known = std::make_shared<std::mutex>();
    return known;
  }
  void leave(const Key& key, std::shared_ptr<std::mutex> flight) {
    const std::lock_guard lock(mutex_);
    flight.reset();
    const auto at = all_.find(key);
    if (at != all_.end() && at->second.use_count() == 1) all_.erase(at);  // nobody waits
  }

  ForkSafeMutex mutex_;
  std::map<Key, std::shared_ptr<std::mutex>> all_;
  const InForkedChild forget_{[this] { all_.clear(); }};
};

}  // namespace tensorcraft::jit
