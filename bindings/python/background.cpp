// SPDX-License-Identifier: Apache-2.0
#include "background.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/interrupt.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace tensorcraft::python {
namespace {

// One thread for all objects, which goes if it has nothing to do.
class Reaper {
 public:
  void add(std::shared_ptr<void> gone) {
    const std::lock_guard lock(mutex_);
    gone_.push_back(std::move(gone));
    if (std::exchange(busy_, true)) return;
    try {
      std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {  // the next one's thread, or wait(), ends it
      busy_ = false;
    }
  }
  // Returns when all are ended. Kind cancelled if an interrupt comes first.
  void wait() {
    std::unique_lock lock(mutex_);
    if (!std::exchange(busy_, true)) return lock.unlock(), work();
    wait_or_interrupt(idle_, lock, [this] { return !busy_; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!gone_.empty()) {
      std::shared_ptr<void> one = std::move(gone_.front());
      gone_.pop_front();
      lock.unlock();
      one.reset();
      lock.lock();
    }
    busy_ = false;
    idle_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<void>> gone_;
  bool busy_ = false;
};
// The one of this process: the thread of another stays behind in a fork.
struct Current {
  std::unique_ptr<Reaper> reaper = std::make_unique<Reaper>();
  const InForkedChild starts_anew{[this] {
    static_cast<void>(reaper.release());  // its mutex may be held
    reaper = std::make_unique<Reaper>();
  }};
};
Reaper& reaper() {
  static constinit FirstMade<Current> one;
  return *one->reaper;
}

void wait_for_background() {
  const WithoutGil released;
  reaper().wait();
}

}  // namespace

void end_elsewhere(std::shared_ptr<void> object) { reaper().add(std::move(object)); }

void register_background(nb::module_& m) {
  m.def("wait_for_background", &wait_for_background,
        "Waits for schedulers and engines that went without close().");
}

}  // namespace tensorcraft::python
