// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tensorcraft/runtime/memory/memory_device.hpp"
#include "tensorcraft/runtime/memory/size_class.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::test {

// Does what a device does, in host memory and as late as the test likes: each stream is a queue of
// work that runs when the test, or a wait, asks for it. Safe for concurrent use.
class SimulatedDevice {
 public:
  explicit SimulatedDevice(size_t capacity = size_t(1) << 30, bool has_memory = true)
      : capacity_(capacity), has_memory_(has_memory) {}
  ~SimulatedDevice() {
    for (const auto& [memory, bytes] : segments_)
      if (has_memory_) std::free(memory);
  }
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  // A stream of this number: the same handle for ever, another id once it was replaced.
  static StreamRef stream(uintptr_t number) {
    return number == 0 ? StreamRef() : StreamRef(reinterpret_cast<CUstream_st*>(number + 16), 0);
  }
  void replace(StreamRef stream) {
    const Lock lock(mutex_);
    by_handle_.erase(stream.handle());
  }
  // Streams that end unseen, as those of other libraries.
  bool streams_last = true;

  void enqueue(StreamRef stream, std::function<void()> work) {
    const Lock lock(mutex_);
    push(stream, {std::move(work), nullptr});
  }
  // Runs the first work of some stream that is ready; false if none is.
  bool step(std::mt19937& random) {
    const Lock lock(mutex_);
    std::vector<StreamQueue*> ready;
    for (auto& [handle, queue] : queues_)
      if (queue->is_ready() && !queue->stalled) ready.push_back(queue.get());
    if (ready.empty()) return false;
    ready[random() % ready.size()]->run_one();
    return true;
  }
  void stall(StreamRef stream, bool stalled = true) {
    const Lock lock(mutex_);
    queue_of(stream)->stalled = stalled;
  }
  // All of a stream, and what it waits for.
  void run(StreamRef stream) {
    const Lock lock(mutex_);
    const auto queue = queue_of(stream);
    run_until(*queue, queue->enqueued);
  }
  void run_all() {
    const Lock lock(mutex_);
    const auto all = queues_;
    for (const auto& [handle, queue] : all) run_until(*queue, queue->enqueued);
  }

  // Records a graph from the stream; what it owns is released by destroy().
  void begin_recording(StreamRef stream) {
    const Lock lock(mutex_);
    queue_of(stream)->recording = ++last_recording_;
  }
  uint64_t end_recording(StreamRef stream) {
    const Lock lock(mutex_);
    return std::exchange(queue_of(stream)->recording, 0);
  }
  void destroy(uint64_t recording) {
    std::vector<std::pair<void (*)(void*), void*>> owned;
    {
      const Lock lock(mutex_);
      owned = std::exchange(owned_[recording], {});
    }
    for (const auto& [release, object] : owned) release(object);
  }

  // The n-th call from now on fails, and each `every` calls after it; 0 for none.
  void fail_at(long n, long every = 0) {
    const Lock lock(mutex_);
    next_failure_ = n > 0 ? calls_ + n : 0;
    every_ = every;
  }
  long calls() const { return calls_; }
  long failures = 0;
  size_t bytes_taken() const { return taken_; }
  std::atomic<int64_t> takes = 0, gives = 0, marks = 0, waits = 0;
  std::string damage;  // what no device forgives

  std::unique_ptr<memory::MemoryDevice> handle();

 private:
  friend class SimulatedHandle;
  friend class SimulatedMark;
  using Lock = std::lock_guard<std::recursive_mutex>;
  struct StreamQueue;
  using Queue = std::shared_ptr<StreamQueue>;
  struct Work {
    std::function<void()> run;
    Queue after;  // that it waits for, to this position
    uint64_t position = 0;
    bool is_ready() const { return !after || after->done >= position; }
  };
  struct StreamQueue {
    uint64_t id = 0, recording = 0, enqueued = 0, done = 0;
    bool stalled = false;
    std::deque<Work> work;
    bool is_ready() const { return !work.empty() && work.front().is_ready(); }
    void run_one() {
      const auto first = std::move(work.front());
      work.pop_front();
      first.run();
      ++done;
    }
  };

  Queue& queue_of(StreamRef stream) {
    Queue& queue = by_handle_[stream.handle()];
    if (!queue) {
      queue = std::make_shared<StreamQueue>();
      queue->id = ++last_id_;
    }
    queues_[queue->id] = queue;
    return queue;
  }
  void push(StreamRef stream, Work work) {
    const Queue queue = queue_of(stream);
    ++queue->enqueued;
    if (queue->recording) {  // a graph's work; the test runs it or not
      ++queue->done;
      return;
    }
    queue->work.push_back(std::move(work));
  }
  void run_until(StreamQueue& queue, uint64_t position) {
    while (queue.done < position && !queue.work.empty()) {
      const Queue after = queue.work.front().after;
      if (after) run_until(*after, queue.work.front().position);
      queue.run_one();
    }
  }
  // A call of the device's: throws if it is to fail.
  void enter(const char* call) {
    ++calls_;
    if (next_failure_ == 0 || calls_ != next_failure_) return;
    next_failure_ = every_ ? calls_ + every_ : 0;
    ++failures;
    fail(ErrorKind::internal, call, ": failed on purpose");
  }

  const size_t capacity_;
  const bool has_memory_;
  mutable std::recursive_mutex mutex_;
  std::map<CUstream_st*, Queue> by_handle_;
  std::map<uint64_t, Queue> queues_;
  std::map<void*, size_t> segments_;
  std::map<uint64_t, std::vector<std::pair<void (*)(void*), void*>>> owned_;
  size_t taken_ = 0;
  uintptr_t next_address_ = uintptr_t(1) << 40;
  uint64_t last_id_ = 0, last_recording_ = 0;
  long calls_ = 0, next_failure_ = 0, every_ = 0;
};

class SimulatedMark final : public memory::Mark {
 public:
  explicit SimulatedMark(SimulatedDevice& device) : device_(device) { ++device_.marks; }
  ~SimulatedMark() override { --device_.marks; }
  void record(StreamRef stream) override {
    const SimulatedDevice::Lock lock(device_.mutex_);
    device_.enter("record");
    queue_ = device_.queue_of(stream);
    if (queue_->recording) device_.damage += "a mark is recorded into a graph; ";
    position_ = queue_->enqueued;
  }
  bool done() override {
    const SimulatedDevice::Lock lock(device_.mutex_);
    device_.enter("query");
    return queue_->done >= position_;
  }
  void order_before(StreamRef stream) override {
    const SimulatedDevice::Lock lock(device_.mutex_);
    device_.enter("wait event");
    ++device_.waits;
    device_.push(stream, {[] {}, queue_, position_});
  }
  void wait() override {
    const SimulatedDevice::Lock lock(device_.mutex_);
    device_.enter("synchronize event");
    device_.run_until(*queue_, position_);
  }

 private:
  SimulatedDevice& device_;
  SimulatedDevice::Queue queue_;
  uint64_t position_ = 0;
};

// A pool holds this of the device, which outlives it.
class SimulatedHandle final : public memory::MemoryDevice {
 public:
  explicit SimulatedHandle(SimulatedDevice& device) : d_(device) {}
  const char* name() const override { return "the simulated device"; }
  void* take(size_t bytes) override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    d_.enter("take");
    if (bytes > d_.capacity_ - d_.taken_) return nullptr;
    void* memory = reinterpret_cast<void*>(d_.next_address_);
    if (d_.has_memory_)
      memory = std::aligned_alloc(memory::kGranule, bytes);
    else
      d_.next_address_ += memory::round_up(bytes, size_t(1) << 21) + (size_t(1) << 21);
    d_.segments_[memory] = bytes;
    d_.taken_ += bytes;
    ++d_.takes;
    return memory;
  }
  void give(void* memory) noexcept override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    const auto segment = d_.segments_.find(memory);
    if (segment == d_.segments_.end()) {
      d_.damage += "memory is given back that was not taken; ";
      return;
    }
    d_.taken_ -= segment->second;
    d_.segments_.erase(segment);
    ++d_.gives;
    if (d_.has_memory_) std::free(memory);
  }
  size_t total_bytes() const override { return d_.capacity_; }
  size_t free_bytes() const override { return d_.capacity_ - d_.taken_; }
  void require_usable() const override {}
  bool usable() const noexcept override { return true; }

  memory::StreamState look(StreamRef stream) override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    d_.enter("look");
    const auto queue = d_.queue_of(stream);
    return {queue->id, queue->recording};
  }
  bool lasts(StreamRef) override { return d_.streams_last; }
  bool can_mark(StreamRef stream) override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    return d_.queue_of(stream)->recording == 0;
  }
  std::unique_ptr<memory::Mark> make_mark() override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    d_.enter("make mark");
    return std::make_unique<SimulatedMark>(d_);
  }
  void copy(void* to, const void* from, size_t bytes, StreamRef stream) override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    d_.enter("copy");
    d_.enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  }
  void fill(void* to, unsigned char value, size_t bytes, StreamRef stream) override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    d_.enter("fill");
    d_.enqueue(stream, [=] { std::memset(to, value, bytes); });
  }
  void synchronize(StreamRef stream) override { d_.run(stream); }
  void give_to_graph(StreamRef stream, void (*release)(void*), void* owned) override {
    const SimulatedDevice::Lock lock(d_.mutex_);
    d_.enter("give to graph");
    d_.owned_[d_.queue_of(stream)->recording].emplace_back(release, owned);
  }

 private:
  SimulatedDevice& d_;
};

inline std::unique_ptr<memory::MemoryDevice> SimulatedDevice::handle() {
  return std::make_unique<SimulatedHandle>(*this);
}

// Empty if the sums of a pool hold, and it holds no more than it may.
inline std::string wrong_sums(const AllocatorStatistics& s) {
  std::string wrong;
  if (s.reserved != s.used + s.cached) wrong += "reserved is not used + cached; ";
  if (s.available != s.quota - s.used) wrong += "available is not quota - used; ";
  if (s.reserved > s.quota) wrong += "more is reserved than the quota; ";
  if (s.live_bytes > s.used - s.captured) wrong += "more is live than used; ";
  if (s.peak_used < s.used || s.peak_reserved < s.reserved) wrong += "a peak is too low; ";
  if (s.live_blocks < 0 || s.cached < 0 || s.captured < 0) wrong += "a count is negative; ";
  if (s.reuses + s.driver_allocations < s.allocations) wrong += "an allocation was not counted; ";
  return wrong;
}

}  // namespace tensorcraft::test
