// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tensorcraft::test {

struct FakeGpu {
  const char* name = "Fake H200";
  int compute_capability = 90;
  int num_sms = 132, clock_khz = 1980000, memory_clock_khz = 3201000, memory_bus_bits = 6144;
  int shared_bytes_per_block = 232448;
  size_t memory_bytes = size_t(141) << 30;
};

struct FakeLaunch {
  Dim3 grid, block, cluster;
  uint32_t shared_bytes = 0;
  bool programmatic_dependent_launch = false;
  uint32_t num_attributes = 0;
  int device = 0;
  CUstream_st* stream = nullptr;
};

// A CUDA driver in host memory, installed while the object lives. Work runs when it is enqueued, so
// streams are in order; each launch moves the clock of the events by one millisecond.
class FakeDriver {
 public:
  explicit FakeDriver(std::vector<FakeGpu> gpus = {FakeGpu{}}, int version = 13000,
                      std::map<std::string, int> failing = {});
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  std::vector<FakeGpu> gpus;
  int version = 13000;
  // Calls that fail, by the driver's name, with the status they give.
  std::map<std::string, int> failing;
  // "name at n" fails the n-th call (from 1) of that name only.
  void fail_at(const std::string& name, int n, int status);
  // The n-th call from now on (from 1), whichever it is, fails once with this status.
  void fail_nth(long n, int status);
  long num_calls = 0;  // of all names
  // Runs inside each call, before it answers.
  std::function<void(std::string_view name)> on_call;
  // What a launch does with its parameters; nothing by default.
  std::function<void(const FakeLaunch&, const void* params)> on_launch;

  std::map<std::string, int> calls;
  std::vector<FakeLaunch> launches;
  std::map<int, int> max_dynamic_shared;  // by device, as the last kernel asked
  std::string jit_log;                    // what a refused image leaves in the log
  uint64_t last_tensor_map_strides[4] = {};
  std::atomic<int> streams = 0, events = 0, libraries = 0, blocks = 0, pinned = 0;  // alive
  int retained_contexts = 0;
  bool capturing = false;            // what every stream says of itself
  CUstream_st* last_free = nullptr;  // the stream that memory went back on last
  double clock_ms = 0;

  // The context current on the calling thread.
  static CUctx_st* current_context();
  static void set_current_context(CUctx_st* context);
  static CUctx_st* context_of(int device);

  // The status the call answers with; counts it. Safe from any thread.
  int enter(const char* name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::map<int, int>> failing_at_;
  std::map<long, int> failing_nth_;
  cuda::Driver table_;
};

}  // namespace tensorcraft::test
