// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/wait_value.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

// Waits for words of memory by streams and by the host. Internal to cuda/.
namespace tensorcraft::cuda {

using Timeout = std::optional<std::chrono::nanoseconds>;

// A flag as waits see it: addresses of the host, or of a device.
struct WaitFlag {
  uint32_t* value;
  uint32_t* abort = nullptr;      // a kernel that waits ends once it is not 0; null: it has none
  uint32_t* timed_out = nullptr;  // such a kernel sets it to 1 when its time is over
};

// Does a flag end a wait?
bool is_met(WaitCondition condition, uint32_t flag, uint32_t value);
// Lets a stream wait: by the driver if it can and no time is given, else by a kernel of one thread,
// which takes a place on a multiprocessor until then. `what` is who asked, for errors.
void enqueue_wait(const WaitFlag& flag, WaitCondition condition, uint32_t value, StreamRef stream,
                  const Timeout& timeout, std::string_view what);
void enqueue_write(uint32_t* flag, uint32_t value, StreamRef stream, std::string_view what);
// Lets the calling thread wait. False: the time is over. Kind cancelled if it is interrupted.
bool wait_on_host(const uint32_t* flag, WaitCondition condition, uint32_t value,
                  const Timeout& timeout);

}  // namespace tensorcraft::cuda
