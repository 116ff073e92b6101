// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"

namespace tensorcraft::bench {

// Bytes of the last cache before memory: L2 of a GPU, L3 of a CPU; 32 MiB if nothing says.
size_t cache_bytes(const DeviceInfo& device);

}  // namespace tensorcraft::bench
