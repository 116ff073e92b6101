// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tensorcraft::transfer {

// Fills and empties slots, beside the thread that asks.
class Stager {
 public:
  virtual ~Stager() = default;
  // A started work that is over, and what it threw.
  struct Done {
    uint64_t tag;              // of start()
    std::exception_ptr error;  // null if it threw nothing
  };
  // Called after each work, on any thread, until the stager is gone. Set before the first work.
  virtual void on_done(std::function<void()> notice) = 0;
  // Begins a work; the tag comes back from take_done() once. What it throws says that the work
  // does not begin; the tag does not come back then.
  virtual void start(uint64_t tag, std::function<void()> work) = 0;
  // Since the last call.
  virtual std::vector<Done> take_done() = 0;
};

// With threads of its own, which begin with the first work. The destructor waits for what has begun
// and drops the rest.
class ThreadStager final : public Stager {
 public:
  // As many as bring a copy engine its bytes, and leave cores to the program; kind value for less
  // than one.
  static int usual_threads();
  explicit ThreadStager(int threads = usual_threads());
  ~ThreadStager() override;
  void on_done(std::function<void()> notice) override { notice_ = std::move(notice); }
  void start(uint64_t tag, std::function<void()> work) override;
  std::vector<Done> take_done() override;

 private:
  void run();
  void require_thread();

  const int count_;
  std::function<void()> notice_;
  std::mutex mutex_;
  std::condition_variable work_or_end_;
  std::deque<std::pair<uint64_t, std::function<void()>>> works_;
  std::vector<Done> done_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace tensorcraft::transfer
