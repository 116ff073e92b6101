// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/start_thread.hpp"
#include "tensorcraft/runtime/transfer/copy_device.hpp"

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace tensorcraft::transfer {
namespace {

// A stream: copies that a thread of its own makes in order.
class HostLane {
 public:
  ~HostLane() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
  }
  void enqueue(void* to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    // Before the copy is one of the lane's, which a later thread would make.
    if (!thread_.joinable())
      thread_ = start_thread("TransferEngine", "close engines and schedulers that are done",
                             [this] { run(); });
    copies_.push_back({to, from, bytes});
    ++enqueued_;
    changed_.notify_all();
  }
  uint64_t position() {
    const std::lock_guard lock(mutex_);
    return enqueued_;
  }
  bool passed(uint64_t position) {
    const std::lock_guard lock(mutex_);
    return done_ >= position;
  }
  void wait_for(uint64_t position) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= position; });
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !copies_.empty(); });
      if (copies_.empty()) return;
      const Copy copy = copies_.front();
      copies_.pop_front();
      lock.unlock();
      std::memcpy(copy.to, copy.from, copy.bytes);
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> copies_;
  uint64_t enqueued_ = 0, done_ = 0;
  bool ending_ = false;
  std::jthread thread_;  // last: joined before the rest goes
};
using Lanes = std::array<HostLane, kDirections>;

// Handles of lanes count from 1; any other stream is one of the host, whose work is done.
HostLane* lane_of(Lanes& lanes, StreamRef stream) {
  const auto number = reinterpret_cast<uintptr_t>(stream.handle());
  return number >= 1 && number <= kDirections ? &lanes[number - 1] : nullptr;
}

class HostMark final : public memory::Mark {
 public:
  explicit HostMark(std::shared_ptr<Lanes> lanes) : lanes_(std::move(lanes)) {}
  void record(StreamRef stream) override {
    lane_ = lane_of(*lanes_, stream);
    position_ = lane_ ? lane_->position() : 0;
  }
  bool done() override { return !lane_ || lane_->passed(position_); }
  // Work of the caller is done by the host itself.
  void order_before(StreamRef stream) override {
    if (lane_ && lane_ != lane_of(*lanes_, stream)) wait();
  }
  void wait() override {
    if (lane_) lane_->wait_for(position_);
  }

 private:
  const std::shared_ptr<Lanes> lanes_;
  HostLane* lane_ = nullptr;
  uint64_t position_ = 0;
};

class HostCopyDevice final : public CopyDevice {
 public:
  bool usable() const noexcept override { return true; }
  bool is_pageable(const void*) override { return true; }
  Allocator& staging() override { return allocator(Device::cpu()); }
  StreamRef lane(Direction direction) override {
    return StreamRef(reinterpret_cast<CUstream_st*>(uintptr_t(direction) + 1), 0);
  }
  std::unique_ptr<memory::Mark> make_mark(StreamRef) override {
    return std::make_unique<HostMark>(lanes_);
  }
  void copy(const Request& request, void* to, const void* from, size_t bytes) override {
    (*lanes_)[size_t(request.direction)].enqueue(to, from, bytes);
  }
  void synchronize(StreamRef lane) override {
    HostLane* const own = lane_of(*lanes_, lane);
    own->wait_for(own->position());
  }

 private:
  const std::shared_ptr<Lanes> lanes_ = std::make_shared<Lanes>();
};

}  // namespace

std::unique_ptr<CopyDevice> host_copy_device() { return std::make_unique<HostCopyDevice>(); }

}  // namespace tensorcraft::transfer
