// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/memory_device.hpp"

#include <memory>

namespace tensorcraft::memory {

// The memory of a CUDA device, and page-locked host memory that its streams copy from and to.
// Neither can be used any more once a test puts another driver in the place of this one.
std::unique_ptr<MemoryDevice> cuda_memory_device(int device);
std::unique_ptr<MemoryDevice> pinned_memory_device(int device);
// Half of the machine's memory: what is page-locked is lost to everybody else.
size_t most_pinned_bytes();

}  // namespace tensorcraft::memory
