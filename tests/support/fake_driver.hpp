// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tests/support/fault_point.hpp"
#include "tests/support/guarded_memory.hpp"

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

  // Returns what the driver says of it.
  int attribute(int which) const {
    switch (which) {
      case cuda::kClockKhz:
        return clock_khz;
      case cuda::kMultiprocessorCount:
        return num_sms;
      case cuda::kMemoryClockKhz:
        return memory_clock_khz;
      case cuda::kMemoryBusBits:
        return memory_bus_bits;
      case cuda::kL2Bytes:
        return 60 << 20;
      case cuda::kThreadsPerMultiprocessor:
        return 2048;
      case cuda::kComputeMajor:
        return compute_capability / 10;
      case cuda::kComputeMinor:
        return compute_capability % 10;
      case cuda::kSharedBytesPerMultiprocessor:
        return shared_bytes_per_block + 1024;
      case cuda::kRegistersPerMultiprocessor:
        return 65536;
      case cuda::kSharedBytesPerBlockOptIn:
        return shared_bytes_per_block;
      default:
        return 0;
    }
  }
};

struct FakeLaunch {
  Dim3 grid, block, cluster;
  uint32_t shared_bytes = 0;
  bool programmatic_dependent_launch = false;
  uint32_t num_attributes = 0;
  int device = 0;
  CUstream_st* stream = nullptr;
};

// The launches of a loaded image run this; their only parameter is a struct of params_bytes.
struct FakeKernel {
  std::function<void(const FakeLaunch&, const void* params)> run;
  size_t params_bytes = 0;
};

// A CUDA driver in host memory, installed while the object lives. Each launch moves the clock of
// the events by one millisecond. A call that fails has done nothing.
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
  FaultPoint faults;  // of calls whatever their names
  // Runs inside each call, before it answers.
  std::function<void(std::string_view name)> on_call;
  // A launch calls this with its parameters, before it returns; nothing by default.
  std::function<void(const FakeLaunch&, const void* params)> on_launch;
  // Returns what the launches of an image run in their stream; without it they compute nothing. An
  // image for which it gives none is refused.
  std::function<FakeKernel(const char* image)> load_kernel;
  // Work runs when something waits for it, each stream by itself, else when it is enqueued.
  bool deferred = false;
  // Reports what no driver forgives: a late access, a second free, a kernel that failed; empty if
  // all is well.
  std::string damage();

  std::map<std::string, int> calls;
  std::vector<FakeLaunch> launches;
  std::map<int, int> max_dynamic_shared;  // by device, as the last kernel asked
  std::string jit_log;                    // what a refused image leaves in the log
  uint64_t last_tensor_map_strides[4] = {};
  int last_corners[2][3] = {};  // of a map of windows, lower and upper
  std::atomic<int> streams = 0, events = 0, libraries = 0, blocks = 0, pinned = 0,
                   graphs = 0;  // alive
  int alive() const { return streams + events + libraries + blocks + pinned + graphs; }
  std::atomic<int> retained_contexts = 0;
  bool capturing = false;            // what every stream says of itself
  uint64_t streams_before = 0;       // by whose number handles were known before
  int last_priority = 0;             // of a stream that was created with one
  CUstream_st* last_free = nullptr;  // the stream that memory went back on last
  double clock_ms = 0;

  // The one that is installed; null without.
  static FakeDriver* installed();
  // The context current on the calling thread.
  static CUctx_st* current_context();
  static void set_current_context(CUctx_st* context);
  static CUctx_st* context_of(int device);
  static int current_device();  // a context must be current

  // The status the call answers with; counts it. Safe from any thread.
  int enter(const char* name);
  void add_damage(const std::string& text);

  std::recursive_mutex device_mutex;  // what the devices hold: memory, streams, work
  GuardedMemory memory;
  std::map<void*, size_t> pinned_memory;

 private:
  std::mutex mutex_;
  std::map<std::string, std::map<int, int>> failing_at_;
  std::string damage_;
  cuda::Driver table_;
};

}  // namespace tensorcraft::test
