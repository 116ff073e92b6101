// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/jit/entry.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// One kernel of a warm-up is ready, or failed.
struct WarmupStep {
  size_t done = 0, total = 0;  // kernels, this one included
  std::string name;            // readable_name()
  bool from_disk = false;      // or from memory: nothing was compiled
  double milliseconds = 0;     // this kernel took, compiled or read
  std::string error;           // empty if it is ready
};
// Told of each.
using WarmupCallback = std::function<void(const WarmupStep&)>;

// How a warm-up went.
struct WarmupReport {
  // Kernels that were ready at its end, those that were not, and its time in all.
  size_t compiled = 0, from_disk = 0;
  std::vector<WarmupStep> failures;
  double seconds = 0;
};

// Compiles kernels into the disk cache for an architecture ("sm_90a"), on `threads` threads (0:
// one for each core the process may use); needs no GPU. A key that is listed twice is one kernel.
// `progress` is called on the calling thread, once for each kernel in the order in which they
// finish; an error it throws ends the warm-up early. A kernel that fails, or that the disk does not
// take, is reported and does not stop the others.
WarmupReport warmup(std::span<const KernelKey> kernels, std::string_view arch,
                    const WarmupCallback& progress = {}, int threads = 0);
// Does the same for a CUDA device or the emulator, and loads the kernels on it: no later call of
// this process waits.
WarmupReport warmup(std::span<const KernelKey> kernels, Device device,
                    const WarmupCallback& progress = {}, int threads = 0);

}  // namespace tensorcraft::jit
