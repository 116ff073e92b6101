// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/memory_device.hpp"

#include <memory>

namespace tensorcraft::memory {

// Memory of the host, whose work is done when a call returns: there is one stream, and every mark
// is passed.
std::unique_ptr<MemoryDevice> host_memory_device();

}  // namespace tensorcraft::memory
