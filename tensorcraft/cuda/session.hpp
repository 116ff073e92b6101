// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/graph_memory.hpp"
#include "tensorcraft/cuda/stream_counter.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

// Keeps what the process knows from one driver. Internal to cuda/.
namespace tensorcraft::cuda {

struct DeviceSlot {
  std::once_flag described, retained;
  DeviceInfo info;
  std::string problem;  // why the device cannot be used; its first line is an exact message
  CUctx_st* owned_context = nullptr;         // retained once, whatever fails after it
  std::atomic<CUctx_st*> context = nullptr;  // the same, once it is set up
  GraphMemory graph_memory;
  StreamCounters stream_counters;
};

struct Session {
  const Driver* driver = nullptr;  // null when there is none, or none that works
  std::string problem;
  uint64_t number = 0;
  int version = 0;
  int count = 0;
  std::unique_ptr<DeviceSlot[]> devices;

  std::atomic<bool> lost = false;
  std::mutex mutex;         // guards the writing of first_cause
  std::string first_cause;  // written before `lost` is set, never after
};

// The current session; the first call opens the driver. Leaked on purpose: objects with static
// storage may still free streams and memory after every destructor here ran.
Session& session();
// The session if one was opened.
Session* opened_session() noexcept;
// True in a child forked from a process that had opened the driver.
bool forked() noexcept;

// The slot of a device that exists, described; kind value or unsupported otherwise.
DeviceSlot& device_slot(int index);
// For destructors: runs `action` with the device's context current; does nothing if CUDA cannot be
// used any more. There is no later try, so a refusal that may pass is tried once more here.
template <class Action>
void quietly_on(int device, Action action) noexcept {
  for (int attempt = 0; attempt < 2 && usable(); ++attempt) {
    try {
      const DeviceGuard guard(device);
      action(*driver());
      return;
    } catch (...) {  // the context is gone, and what it held with it
    }
  }
}
// Is work of the stream recorded into a graph? The stream's context is current.
bool is_recorded(const Driver& driver, StreamRef stream);
// Makes the next default_device() choose again, and warn again.
void forget_default_device();

}  // namespace tensorcraft::cuda
