// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/jit/entry.hpp"

#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tensorcraft::jit {

// The compile gate and `explain` read this from a compilation.
struct CompileReport {
  std::string signature;  // readable, ends in the key's hash
  std::string image, log;
  int registers = 0;
  size_t shared_bytes = 0;                  // static
  size_t spill_bytes = 0, stack_bytes = 0;  // stores and loads together; a thread's frame
  double milliseconds = 0;                  // of the compilation, even if the image came from disk
  bool from_disk = false, on_disk = false;  // on_disk: before or since
};
// Compiles for an architecture ("sm_90a") without loading; goes through the disk cache unless
// `fresh`. Kind compile with the log of NVRTC if the text does not compile.
CompileReport compile(const KernelKey& key, std::string_view arch, bool fresh = false);

// The loaded kernel for a key on a device: memory, then disk, then NVRTC. Safe from any thread;
// callers that ask for one key at one time share one compilation. Kind compile with the log of
// NVRTC if the text does not compile; nothing is cached then. `stream` is the one that the kernel
// will be launched on: while it records a graph nothing can be loaded, so a kernel that is not in
// memory is refused with kind unsupported. The reference holds until the thread's next call.
const std::shared_ptr<const LoadedKernel>& get_kernel(
    const KernelKey& key, Device device, std::optional<StreamRef> stream = std::nullopt);

// Begins to load a kernel that memory does not have, on a thread of its own, so that it is compiled
// beside one that the caller asks for first; the get_kernel() that follows waits for it and tells
// its error. Nothing is begun while `stream` records a graph. The future waits for the thread.
std::future<void> load_ahead(const KernelKey& key, Device device,
                             std::optional<StreamRef> stream = std::nullopt);

// Loads the kernel ahead of a call. True if NVRTC compiled it now, false if memory or disk had it.
bool load_kernel(const KernelKey& key, Device device);

// Forgets every loaded kernel; those still in use stay loaded. The disk cache is kept.
void clear_memory();
// How many loaded kernels are kept; the one unused for longest goes first. 4,096 at the start.
void set_memory_limit(size_t kernels);

// Counters since the process began, for tests and `doctor`.
struct Counters {
  long memory_hits = 0, disk_hits = 0, compiles = 0, bad_entries = 0;
};
Counters counters();

}  // namespace tensorcraft::jit
