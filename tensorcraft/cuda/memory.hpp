// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <cstddef>

// The driver's memory calls, each stream-ordered. Above this folder only runtime/memory calls the
// first two, for all others; scripts/check_budgets.py holds that.
namespace tensorcraft::cuda {

// Kind out_of_memory if the device has no room; 256-byte aligned; never null for bytes > 0.
void* allocate(size_t bytes, StreamRef stream);
void deallocate(void* pointer, StreamRef stream) noexcept;
// Page-locked host memory.
void* allocate_pinned(size_t bytes);
void deallocate_pinned(void* pointer) noexcept;
// Between the host and a device, or within one (unified addressing); host memory that is not
// page-locked makes the call wait, as the driver documents.
void copy_async(void* to, const void* from, size_t bytes, StreamRef stream);
void fill_async(void* to, unsigned char value, size_t bytes, StreamRef stream);

}  // namespace tensorcraft::cuda
