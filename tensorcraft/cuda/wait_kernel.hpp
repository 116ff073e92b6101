// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <cstdint>
#include <string_view>

namespace tensorcraft::cuda {

// The params of wait_flag_kernel: addresses as the device sees them, in the order of its text.
struct WaitKernelParams {
  const uint32_t* flag;
  const uint32_t* abort;  // null: nothing ends it early
  uint32_t* timed_out;    // null: it is not told
  int64_t limit_ns;       // 0: it waits for ever
  uint32_t value, condition;
};

// Enqueues a kernel of one thread that reads the flag, sleeping for 100 ns in between, until the
// condition holds. It is there where the driver cannot wait, or not for a limited time.
void launch_wait_kernel(const WaitKernelParams& params, StreamRef stream, std::string_view what);

}  // namespace tensorcraft::cuda
