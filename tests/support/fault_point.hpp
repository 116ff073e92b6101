// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <iterator>
#include <mutex>

namespace tensorcraft::test {

// Statuses of the driver that tests make it answer with.
inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kDeinitialized = 4, kEccError = 214,
                     kIllegalAddress = 700, kLaunchFailed = 719, kSystemNotReady = 802,
                     kUnknownError = 999;

// After one of these the driver answers every further call with the same.
inline bool is_sticky(int status) {
  constexpr int codes[] = {kEccError, kIllegalAddress, kLaunchFailed};
  return std::find(std::begin(codes), std::end(codes), status) != std::end(codes);
}

// Which of a driver's calls fail: the n-th from now on, every n-th, or the n-th and all later ones.
enum class Repeat { once, every, from };

// Counts calls and says what each answers. Safe from any thread.
class FaultPoint {
 public:
  void plan(long n, int status, Repeat repeat = Repeat::once) {
    const std::lock_guard lock(mutex_);
    n_ = n;
    status_ = status;
    repeat_ = repeat;
    seen_ = given_ = 0;
  }
  void clear() { plan(0, 0); }

  // The status of the call that is made now; 0 if it does not fail.
  int next() {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (lost_) {
      ++after_loss_;
      return lost_;
    }
    ++seen_;
    if (n_ == 0) return 0;
    const bool fails = repeat_ == Repeat::once    ? seen_ == n_
                       : repeat_ == Repeat::every ? seen_ % n_ == 0
                                                  : seen_ >= n_;
    if (!fails) return 0;
    ++given_;
    if (is_sticky(status_)) lost_ = status_;
    return status_;
  }
  // A kernel that failed: every later call learns of it.
  void lose(int status) {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = status;
  }

  long calls() const { return locked(calls_); }
  long given() const { return locked(given_); }            // faults since plan()
  long after_loss() const { return locked(after_loss_); }  // calls made of a lost device

 private:
  long locked(const long& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }
  mutable std::mutex mutex_;
  long n_ = 0, seen_ = 0, given_ = 0, calls_ = 0, after_loss_ = 0;
  int status_ = 0, lost_ = 0;
  Repeat repeat_ = Repeat::once;
};

}  // namespace tensorcraft::test
