// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"

#include <cstddef>
#include <string_view>

namespace tensorcraft {

// The resources that one block of a kernel takes.
struct BlockUse {
  int threads = 0;          // of the block
  int registers = 0;        // of each thread
  size_t shared_bytes = 0;  // static and dynamic together
};

// How many blocks of a kernel one multiprocessor holds at a time, and what leaves no room for one
// more.
struct Occupancy {
  int blocks_per_sm = 0;   // 0: the device cannot run such a block
  double fraction = 0;     // of the warps that a multiprocessor can hold
  std::string_view limit;  // "registers", "shared memory", "threads" or "blocks"
};

// From the limits of the device and the units in which it gives out registers and shared memory;
// what the driver's own calculator answers. Kind value for a device that is no GPU, and for a block
// without threads.
Occupancy occupancy(const DeviceInfo& device, const BlockUse& use);

}  // namespace tensorcraft
