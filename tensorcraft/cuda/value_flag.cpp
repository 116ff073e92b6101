// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/value_flag.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/session.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

namespace tensorcraft::cuda {
namespace {

// A line whose event is gone while streams may still use it.
struct Retired {
  FlagLine* line;
  uint64_t driver;
  std::vector<ValueFlag::Use> uses;
};

bool has_passed(const ValueFlag::Use& use) {
  bool passed = true;  // a device that is lost does nothing more
  quietly_on(use.stream.device(), [&](const Driver& driver) {
    passed = driver.event_query.status(use.passed) != kErrorNotReady;
  });
  return passed;
}

void forget(const ValueFlag::Use& use) {
  quietly_on(use.stream.device(), [&](const Driver& d) { d.event_destroy.quiet(use.passed); });
}

// Lines of page-locked memory of one driver.
class Lines {
 public:
  static Lines& instance() {
    static constinit FirstMade<Lines> one;
    return *one;
  }
  FlagLine* take(uint64_t driver) {
    const std::lock_guard lock(mutex_);
    collect();
    if (driver != driver_) free_.clear();  // a test put another driver in its place
    driver_ = driver;
    if (free_.empty()) add_page();
    FlagLine* const line = free_.back();
    free_.pop_back();
    return new (line) FlagLine;
  }
  void give_back(Retired line) {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(line));
    collect();
  }

 private:
  void add_page() {
    constexpr size_t kLines = 64;
    auto* const page = static_cast<FlagLine*>(allocate_pinned(kLines * sizeof(FlagLine)));
    for (size_t i = kLines; i-- > 0;) free_.push_back(page + i);
  }
  void collect() {
    std::erase_if(retired_, [&](const Retired& one) {
      if (one.driver != driver_number()) return true;
      if (!std::ranges::all_of(one.uses, has_passed)) return false;
      for (const ValueFlag::Use& use : one.uses) forget(use);
      if (one.driver == driver_) free_.push_back(one.line);
      return true;
    });
  }
  std::mutex mutex_;
  std::vector<FlagLine*> free_;
  std::vector<Retired> retired_;
  uint64_t driver_ = 0;
};

uint64_t number_of_driver(Device device) {
  if (device.is_cuda()) require_driver();
  return driver_number();
}

}  // namespace

ValueFlag::ValueFlag(Device device)
    : is_pinned_(device.is_cuda()), driver_(number_of_driver(device)) {
  line_ = is_pinned_ ? Lines::instance().take(driver_) : new FlagLine;
}

ValueFlag::~ValueFlag() {
  if (!is_pinned_) {
    delete line_;
    return;
  }
  // Kernels that wait for what nobody can record any more end.
  if (!uses_.empty()) std::atomic_ref(line_->abort).store(1, std::memory_order_release);
  if (is_recorded_) return;
  try {
    Lines::instance().give_back({line_, driver_, std::move(uses_)});
  } catch (...) {  // the line stays unused
  }
}

WaitFlag ValueFlag::seen_by(int device) const {
  auto* const there = static_cast<FlagLine*>(device_address(line_, device));
  return {&there->value, &there->abort, &there->timed_out};
}

void ValueFlag::used_on(StreamRef stream) {
  if (stream.is_capturing()) {
    is_recorded_ = true;
    return;
  }
  const DeviceGuard guard(stream.device());
  const Driver& driver = require_driver();
  auto use = std::ranges::find(uses_, stream, &Use::stream);
  if (use == uses_.end()) {
    CUevent_st* passed = nullptr;
    driver.event_create(&passed, kEventDisableTiming);
    use = uses_.insert(uses_.end(), {stream, passed});
  }
  driver.event_record(use->passed, stream.handle());
}

}  // namespace tensorcraft::cuda
