// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/memory.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/relaxed_recording.hpp"
#include "tensorcraft/cuda/session.hpp"

namespace tensorcraft::cuda {
namespace {

DevicePointer address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

// ", where 5 of 10 bytes are free"; empty if the driver does not say.
std::string free_memory(const Driver& driver) {
  size_t free = 0, total = 0;
  if (!driver.mem_get_info.function) return {};
  if (driver.mem_get_info.status(&free, &total) != kSuccess) return {};
  return join(", where ", free, " of ", total, " bytes are free");
}

}  // namespace

void* allocate(size_t bytes, StreamRef stream) {
  if (bytes == 0) return nullptr;
  const DeviceGuard guard(stream.device());
  const Driver& driver = require_driver();
  DevicePointer pointer = 0;
  const int status = driver.mem_alloc_async.status(&pointer, bytes, stream.handle());
  if (status == kErrorOutOfMemory)
    fail(ErrorKind::out_of_memory, "cuMemAllocAsync: out of memory (2): ", bytes,
         " bytes were asked for on cuda:", stream.device(), free_memory(driver),
         "; free tensors or use smaller batches");
  check(status, driver.mem_alloc_async.name);
  return reinterpret_cast<void*>(pointer);
}

void deallocate(void* pointer, StreamRef stream) noexcept {
  if (!pointer) return;
  quietly_on(stream.device(),
             [&](const Driver& d) { d.mem_free_async.quiet(address(pointer), stream.handle()); });
}

void* allocate_segment(size_t bytes, int device) {
  const DeviceGuard guard(device);
  const Driver& driver = require_driver();
  const RelaxedRecording relaxed(driver);
  DevicePointer pointer = 0;
  const int status = driver.mem_alloc.status(&pointer, bytes);
  if (status == kErrorOutOfMemory) return nullptr;
  check(status, driver.mem_alloc.name);
  return reinterpret_cast<void*>(pointer);
}

void deallocate_segment(void* pointer, int device) noexcept {
  quietly_on(device, [&](const Driver& d) {
    const RelaxedRecording relaxed(d);
    d.mem_free.quiet(address(pointer));
  });
}

size_t free_bytes(int device) {
  const DeviceGuard guard(device);
  const Driver& driver = require_driver();
  size_t free = 0, total = 0;
  if (!driver.mem_get_info.function) return 0;
  return driver.mem_get_info.status(&free, &total) == kSuccess ? free : 0;
}

void* allocate_pinned(size_t bytes) {
  if (bytes == 0) return nullptr;
  const DeviceGuard guard(0);
  const Driver& driver = require_driver();
  const RelaxedRecording relaxed(driver);
  void* pointer = nullptr;
  driver.mem_host_alloc(&pointer, bytes, kHostMemoryPortable);
  return pointer;
}

void deallocate_pinned(void* pointer) noexcept {
  if (!pointer) return;
  quietly_on(0, [&](const Driver& d) { d.mem_free_host.quiet(pointer); });
}

void* device_address(const void* host, int device) {
  const DeviceGuard guard(device);
  const Driver& driver = require_driver();
  DevicePointer pointer = 0;
  const int status =
      driver.pointer_get_attribute.status(&pointer, kPointerDevicePointer, address(host));
  if (status == kErrorInvalidValue) return nullptr;  // the driver does not know the memory
  check(status, driver.pointer_get_attribute.name);
  return reinterpret_cast<void*>(pointer);
}

void copy_async(void* to, const void* from, size_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  const DeviceGuard guard(stream.device());
  require_driver().memcpy_async(address(to), address(from), bytes, stream.handle());
}

void copy_to_peer_async(void* to, int device, const void* from, size_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  CUctx_st* const there = primary_context(device);
  const DeviceGuard guard(stream.device());
  require_driver().memcpy_peer_async(address(to), there, address(from),
                                     primary_context(stream.device()), bytes, stream.handle());
}

bool is_pageable(const void* host, int device) {
  const DeviceGuard guard(device);
  const Driver& driver = require_driver();
  int type = 0;
  if (!driver.pointer_get_attribute.function) return true;
  return driver.pointer_get_attribute.status(&type, kPointerMemoryType, address(host)) != kSuccess;
}

void fill_async(void* to, unsigned char value, size_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  const DeviceGuard guard(stream.device());
  require_driver().memset_async(address(to), value, bytes, stream.handle());
}

}  // namespace tensorcraft::cuda
