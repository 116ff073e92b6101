// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/transfer/copy_device.hpp"
#include "tensorcraft/runtime/transfer/stager.hpp"
#include "tests/support/simulated_memory.hpp"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::test {

// An engine holds this of a simulated device, which outlives it. Host memory is pageable unless the
// test says otherwise. A copy from or to pageable memory on a lane is damage.
class SimulatedCopyDevice final : public transfer::CopyDevice {
 public:
  explicit SimulatedCopyDevice(SimulatedDevice& device)
      : device_(device), handle_(device.handle()) {}
  static StreamRef stream_of(transfer::Direction direction) {
    return SimulatedDevice::stream(100 + uintptr_t(direction));
  }
  bool is_lost = false;
  bool is_pinned = false;  // what the host has

  bool usable() const noexcept override { return !is_lost; }
  bool is_pageable(const void*) override { return !is_pinned; }
  Allocator& staging() override { return allocator(Device::cpu()); }
  StreamRef lane(transfer::Direction direction) override { return stream_of(direction); }
  std::unique_ptr<memory::Mark> make_mark(StreamRef of) override {
    if (!handle_->can_mark(of)) fail(ErrorKind::value, "the stream is recorded");
    return handle_->make_mark();
  }
  void copy(const transfer::Request& request, void* to, const void* from, size_t bytes) override {
    handle_->copy(to, from, bytes, stream_of(request.direction));
  }
  void synchronize(StreamRef lane) override {
    if (is_lost) fail(ErrorKind::device_lost, "the device is lost");
    handle_->synchronize(lane);
  }

 private:
  SimulatedDevice& device_;
  std::unique_ptr<memory::MemoryDevice> handle_;
};

// Copies when the test says so.
class ManualStager final : public transfer::Stager {
 public:
  void on_done(std::function<void()> notice) override { notice_ = std::move(notice); }
  void start(uint64_t tag, std::function<void()> work) override {
    works_.emplace_back(tag, std::move(work));
  }
  std::vector<Done> take_done() override { return std::exchange(done_, {}); }

  size_t waiting() const { return works_.size(); }
  // One of them, the first by default.
  void run(size_t which = 0) {
    const auto [tag, work] = std::move(works_[which]);
    works_.erase(works_.begin() + long(which));
    Done done{tag, nullptr};
    try {
      work();
    } catch (...) {
      done.error = std::current_exception();
    }
    done_.push_back(done);
    if (notice_) notice_();
  }

 private:
  std::function<void()> notice_;
  std::deque<std::pair<uint64_t, std::function<void()>>> works_;
  std::vector<Done> done_;
};

}  // namespace tensorcraft::test
