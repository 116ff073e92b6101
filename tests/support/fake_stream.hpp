// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

struct CUstream_st;

// Holds what was recorded instead of run, and what it owns.
struct CUgraph_st {
  uint64_t number;  // of the recording
  std::vector<std::function<void(CUstream_st*)>> nodes = {};
  std::vector<std::shared_ptr<void>> owned = {};
};

// A stream of the fake driver: work in the order it was enqueued. Work runs when it is waited for,
// as late as the program allows, so what was ordered by luck alone is seen.
struct CUstream_st {
  explicit CUstream_st(int stream_device) : device(stream_device) {}

  void enqueue(std::function<void()> work) {
    queue.push_back(std::move(work));
    ++enqueued;
  }
  void run_all() { run_until(enqueued); }
  // Runs what was enqueued before `position`. Nothing, inside of work that it runs.
  void run_until(uint64_t position) {
    if (running) return;
    running = true;
    while (done < position && !queue.empty()) {
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      ++done;
      work();
    }
    running = false;
  }

  const int device;
  bool destroyed = false, running = false;
  CUgraph_st* graph = nullptr;  // that it is recorded into
  std::deque<std::function<void()>> queue;
  uint64_t enqueued = 0, done = 0;
};

namespace tensorcraft::test {

// Gives a stream of the fake driver, null for the default one, work to do; one that is recorded
// keeps it for its graph.
void enqueue(CUstream_st* handle, std::function<void()> work);

}  // namespace tensorcraft::test
