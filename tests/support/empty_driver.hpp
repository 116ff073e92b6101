// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"

#include <cstdlib>
#include <cstring>

namespace tensorcraft::test {

inline thread_local CUctx_st* empty_driver_context = nullptr;

inline int empty_driver_attribute(int which) {
  switch (which) {
    case cuda::kComputeMajor:
      return 9;
    case cuda::kMultiprocessorCount:
      return 132;
    case cuda::kThreadsPerMultiprocessor:
      return 2048;
    case cuda::kSharedBytesPerMultiprocessor:
      return 233472;
    case cuda::kSharedBytesPerBlockOptIn:
      return 232448;
    case cuda::kRegistersPerMultiprocessor:
      return 65536;
    default:
      return 0;
  }
}

// One H200 whose every call succeeds at once.
inline const cuda::Driver& empty_driver() {
  static cuda::Driver d;
  d.init.function = [](uint32_t) { return 0; };
  d.driver_get_version.function = [](int* version) { return *version = 13000, 0; };
  d.get_error_string.function = [](int, const char** text) { return *text = "", 0; };
  d.device_get.function = [](int* device, int index) { return *device = index, 0; };
  d.device_get_count.function = [](int* count) { return *count = 1, 0; };
  d.device_get_name.function = [](char* name, int, int) { return name[0] = 'H', 0; };
  d.device_total_mem.function = [](size_t* bytes, int) { return *bytes = size_t(141) << 30, 0; };
  d.device_get_attribute.function = [](int* v, int which, int) {
    return *v = empty_driver_attribute(which), 0;
  };
  d.primary_context_retain.function = [](CUctx_st** c, int) {
    return *c = reinterpret_cast<CUctx_st*>(8), 0;
  };
  d.context_get_current.function = [](CUctx_st** c) { return *c = empty_driver_context, 0; };
  d.context_set_current.function = [](CUctx_st* c) { return empty_driver_context = c, 0; };
  d.context_synchronize.function = [] { return 0; };
  d.stream_get_id.function = [](CUstream_st*, uint64_t* number) { return *number = 0, 0; };
  d.stream_is_capturing.function = [](CUstream_st*, int* state) { return *state = 0; };
  d.stream_get_capture_info.function = [](CUstream_st*, int* state, uint64_t*, CUgraph_st**,
                                          const CUgraphNode_st* const**,
                                          size_t*) { return *state = 0; };
  d.device_get_default_mem_pool.function = [](CUmemPoolHandle_st** p, int) {
    return *p = nullptr, 0;
  };
  d.mem_pool_set_attribute.function = [](CUmemPoolHandle_st*, int, void*) { return 0; };
  d.mem_alloc_async.function = [](cuda::DevicePointer* p, size_t bytes, CUstream_st*) {
    *p = reinterpret_cast<cuda::DevicePointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return 0;
  };
  d.thread_exchange_stream_capture_mode.function = [](int*) { return 0; };
  d.mem_alloc.function = [](cuda::DevicePointer* p, size_t bytes) {
    return *p = reinterpret_cast<cuda::DevicePointer>(std::aligned_alloc(256, bytes)), 0;
  };
  d.mem_free.function = [](cuda::DevicePointer p) {
    std::free(reinterpret_cast<void*>(p));
    return 0;
  };
  d.event_create.function = [](CUevent_st** event, uint32_t) { return *event = nullptr, 0; };
  d.event_destroy.function = [](CUevent_st*) { return 0; };
  d.event_record.function = [](CUevent_st*, CUstream_st*) { return 0; };
  d.event_query.function = [](CUevent_st*) { return 0; };
  d.event_synchronize.function = [](CUevent_st*) { return 0; };
  d.stream_wait_event.function = [](CUstream_st*, CUevent_st*, uint32_t) { return 0; };
  d.mem_get_info.function = [](size_t* free, size_t* total) {
    return *free = *total = size_t(141) << 30, 0;
  };
  d.mem_free_async.function = [](cuda::DevicePointer p, CUstream_st*) {
    std::free(reinterpret_cast<void*>(p));
    return 0;
  };
  d.library_load_data.function = [](CUlib_st** l, const void*, int*, void**, uint32_t, int*, void**,
                                    uint32_t) { return *l = nullptr, 0; };
  d.library_unload.function = [](CUlib_st*) { return 0; };
  d.library_get_kernel.function = [](CUkern_st** k, CUlib_st*, const char*) {
    return *k = nullptr, 0;
  };
  d.kernel_get_function.function = [](CUfunc_st** f, CUkern_st*) { return *f = nullptr, 0; };
  d.function_get_attribute.function = [](int* value, int, CUfunc_st*) { return *value = 0; };
  d.function_set_attribute.function = [](CUfunc_st*, int, int) { return 0; };
  // Like the driver's, a map begins with the address.
  d.tensor_map_encode_tiled.function = [](void* map, int, uint32_t, void* address, const uint64_t*,
                                          const uint64_t*, const uint32_t*, const uint32_t*, int,
                                          int, int, int) {
    std::memset(map, 0, 128);
    std::memcpy(map, &address, sizeof(address));
    return 0;
  };
  d.tensor_map_encode_im2col.function = [](void* map, int, uint32_t, void* address, const uint64_t*,
                                           const uint64_t*, const int*, const int*, uint32_t,
                                           uint32_t, const uint32_t*, int, int, int, int) {
    std::memset(map, 0, 128);
    std::memcpy(map, &address, sizeof(address));
    return 0;
  };
  d.tensor_map_replace_address.function = [](void* map, void* address) {
    return std::memcpy(map, &address, sizeof(address)), 0;
  };
  d.launch_kernel.function = [](const cuda::LaunchSetup*, CUfunc_st*, void**, void**) { return 0; };
  return d;
}

}  // namespace tensorcraft::test
