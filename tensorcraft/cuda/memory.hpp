// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <cstddef>

// The driver's memory calls. Above this folder only runtime/memory allocates with them, for all
// others; scripts/check_budgets.py holds that.
namespace tensorcraft::cuda {

// Stream-ordered. Kind out_of_memory if the device has no room; 256-byte aligned; never null for
// bytes > 0.
void* allocate(size_t bytes, StreamRef stream);
void deallocate(void* pointer, StreamRef stream) noexcept;
// Not stream-ordered, and not part of a recording: for memory that a pool is made of. Null if the
// device has no room. Nothing uses what goes back.
void* allocate_segment(size_t bytes, int device);
void deallocate_segment(void* pointer, int device) noexcept;
// Bytes that the driver says are free; 0 if it does not say.
size_t free_bytes(int device);
// Page-locked host memory.
void* allocate_pinned(size_t bytes);
void deallocate_pinned(void* pointer) noexcept;
// Where kernels of a device find memory of the host; null if they do not: it is not page-locked.
void* device_address(const void* host, int device);
// Between the host and a device, or within one (unified addressing); host memory that is not
// page-locked makes the call wait, as the driver documents.
void copy_async(void* to, const void* from, size_t bytes, StreamRef stream);
// To memory of another device, from one of the stream's.
void copy_to_peer_async(void* to, int device, const void* from, size_t bytes, StreamRef stream);
// Is it memory of the host that is not page-locked? True if the driver does not say.
bool is_pageable(const void* host, int device);
void fill_async(void* to, unsigned char value, size_t bytes, StreamRef stream);

}  // namespace tensorcraft::cuda
