// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/kernel_config.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

struct CUfunc_st;
struct CUlib_st;

namespace tensorcraft {

// How a kernel is started.
struct LaunchConfig {
  Dim3 grid, block, cluster;  // in blocks, threads, blocks
  uint32_t shared_bytes = 0;  // dynamic shared memory
  // PDL: may start before the kernel in front has ended, for which it waits itself.
  bool programmatic_dependent_launch = false;
  friend bool operator==(const LaunchConfig&, const LaunchConfig&) = default;
};

// One loaded entry function of one module on one device. Shared: a kernel stays loaded while any
// copy of the handle lives, and after that if it was launched into a graph, which may run again.
class LoadedKernel {
 public:
  // Loads a cubin or PTX image and finds `entry` in it; opts in to the largest dynamic shared
  // memory. Kind compile with the driver's log if the image is refused.
  static std::shared_ptr<const LoadedKernel> load(std::span<const std::byte> image,
                                                  std::string_view entry, int device);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  // The driver says this of the function; registers are those of one thread.
  CUfunc_st* handle() const { return function_; }
  int device() const { return device_; }
  int registers() const { return registers_; }
  size_t static_shared_bytes() const { return static_shared_bytes_; }
  size_t local_bytes() const { return local_bytes_; }  // spills and stack, per thread
  int max_threads() const { return max_threads_; }     // of a block, by its registers and bounds

  // A graph has it: it is never unloaded.
  void stay_loaded() const { stays_loaded_.store(true, std::memory_order_relaxed); }
  bool stays_loaded() const { return stays_loaded_.load(std::memory_order_relaxed); }

 private:
  LoadedKernel() = default;
  CUlib_st* library_ = nullptr;
  CUfunc_st* function_ = nullptr;
  int device_ = 0;
  int registers_ = 0, max_threads_ = 0;
  size_t static_shared_bytes_ = 0, local_bytes_ = 0;
  mutable std::atomic<bool> stays_loaded_ = false;
};

// Enqueues a kernel whose only argument is one struct of `params_bytes` at `params` (copied before
// the call returns). Throws with `what` and the caller's place if the driver refuses.
void launch(const LoadedKernel& kernel, const LaunchConfig& config, const void* params,
            StreamRef stream, std::string_view what,
            std::source_location where = std::source_location::current());

}  // namespace tensorcraft
