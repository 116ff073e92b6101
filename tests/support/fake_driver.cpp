// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_driver.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>

struct CUctx_st {
  int device;
};
struct CUstream_st {
  int device;
};
struct CUevent_st {
  int device;
  double at_ms;
};
struct CUlib_st {
  int device;
};
struct CUkern_st {};
struct CUfunc_st {};

namespace tensorcraft::test {
namespace {

constexpr int kInvalidContext = 201, kInvalidHandle = 400;
constexpr int kStaticSharedBytes = 1024, kLocalBytes = 16, kRegisters = 42;

FakeDriver* fake = nullptr;
CUctx_st contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
CUfunc_st functions[8];
CUlib_st libraries[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
// Handles live as long as the fake, since those of a lost device are never given back.
std::deque<CUstream_st> stream_pool;
std::deque<CUevent_st> event_pool;
thread_local CUctx_st* current = nullptr;

// The answer of a call that needs a current context.
int in_context(const char* name) {
  const int status = fake->enter(name);
  return status ? status : current ? 0 : kInvalidContext;
}

int attribute_of(const FakeGpu& gpu, int which) {
  switch (which) {
    case cuda::kClockKhz:
      return gpu.clock_khz;
    case cuda::kMultiprocessorCount:
      return gpu.num_sms;
    case cuda::kMemoryClockKhz:
      return gpu.memory_clock_khz;
    case cuda::kMemoryBusBits:
      return gpu.memory_bus_bits;
    case cuda::kL2Bytes:
      return 60 << 20;
    case cuda::kThreadsPerMultiprocessor:
      return 2048;
    case cuda::kComputeMajor:
      return gpu.compute_capability / 10;
    case cuda::kComputeMinor:
      return gpu.compute_capability % 10;
    case cuda::kSharedBytesPerMultiprocessor:
      return gpu.shared_bytes_per_block + 1024;
    case cuda::kRegistersPerMultiprocessor:
      return 65536;
    case cuda::kSharedBytesPerBlockOptIn:
      return gpu.shared_bytes_per_block;
    default:
      return 0;
  }
}

void fill_device_calls(cuda::Driver& d) {
  d.init.function = [](uint32_t) { return fake->enter("cuInit"); };
  d.driver_get_version.function = [](int* version) {
    *version = fake->version;
    return fake->enter("cuDriverGetVersion");
  };
  d.get_error_string.function = [](int status, const char** text) {
    *text = status == 2     ? "out of memory"
            : status == 700 ? "an illegal memory access was encountered"
                            : "fake error";
    return 0;
  };
  d.device_get.function = [](int* device, int index) {
    *device = index;
    return fake->enter("cuDeviceGet");
  };
  d.device_get_count.function = [](int* count) {
    *count = int(fake->gpus.size());
    return fake->enter("cuDeviceGetCount");
  };
  d.device_get_name.function = [](char* name, int size, int device) {
    std::strncpy(name, fake->gpus[size_t(device)].name, size_t(size));
    return fake->enter("cuDeviceGetName");
  };
  d.device_total_mem.function = [](size_t* bytes, int device) {
    *bytes = fake->gpus[size_t(device)].memory_bytes;
    return fake->enter("cuDeviceTotalMem");
  };
  d.device_get_attribute.function = [](int* value, int which, int device) {
    *value = attribute_of(fake->gpus[size_t(device)], which);
    return fake->enter("cuDeviceGetAttribute");
  };
  d.primary_context_retain.function = [](CUctx_st** context, int device) {
    *context = &contexts[device];
    ++fake->retained_contexts;
    return fake->enter("cuDevicePrimaryCtxRetain");
  };
  d.context_get_current.function = [](CUctx_st** context) {
    *context = current;
    return fake->enter("cuCtxGetCurrent");
  };
  d.context_set_current.function = [](CUctx_st* context) {
    current = context;
    return fake->enter("cuCtxSetCurrent");
  };
  d.context_synchronize.function = [] { return in_context("cuCtxSynchronize"); };
}

void fill_stream_calls(cuda::Driver& d) {
  d.stream_create.function = [](CUstream_st** stream, uint32_t) {
    if (const int status = fake->enter("cuStreamCreate")) return status;
    if (!current) return kInvalidContext;
    *stream = &stream_pool.emplace_back(CUstream_st{current->device});
    ++fake->streams;
    return 0;
  };
  d.stream_destroy.function = [](CUstream_st*) {
    --fake->streams;
    return in_context("cuStreamDestroy");
  };
  d.stream_synchronize.function = [](CUstream_st*) { return in_context("cuStreamSynchronize"); };
  d.stream_wait_event.function = [](CUstream_st*, CUevent_st*, uint32_t) {
    return in_context("cuStreamWaitEvent");
  };
  d.stream_is_capturing.function = [](CUstream_st*, int* state) {
    *state = fake->capturing;
    return in_context("cuStreamIsCapturing");
  };
  d.event_create.function = [](CUevent_st** event, uint32_t) {
    if (const int status = fake->enter("cuEventCreate")) return status;
    if (!current) return kInvalidContext;
    *event = &event_pool.emplace_back(CUevent_st{current->device, 0});
    ++fake->events;
    return 0;
  };
  d.event_destroy.function = [](CUevent_st*) {
    --fake->events;
    return in_context("cuEventDestroy");
  };
  d.event_record.function = [](CUevent_st* event, CUstream_st* stream) {
    if (stream && stream->device != event->device) return kInvalidHandle;
    event->at_ms = fake->clock_ms;
    return in_context("cuEventRecord");
  };
  d.event_query.function = [](CUevent_st*) { return in_context("cuEventQuery"); };
  d.event_synchronize.function = [](CUevent_st*) { return in_context("cuEventSynchronize"); };
  d.event_elapsed_time.function = [](float* ms, CUevent_st* begin, CUevent_st* end) {
    *ms = float(end->at_ms - begin->at_ms);
    return in_context("cuEventElapsedTime");
  };
}

void fill_memory_calls(cuda::Driver& d) {
  d.device_get_default_mem_pool.function = [](CUmemPoolHandle_st** pool, int) {
    *pool = nullptr;
    return fake->enter("cuDeviceGetDefaultMemPool");
  };
  d.mem_pool_set_attribute.function = [](CUmemPoolHandle_st*, int, void*) {
    return fake->enter("cuMemPoolSetAttribute");
  };
  d.mem_alloc_async.function = [](cuda::DevicePointer* pointer, size_t bytes, CUstream_st*) {
    if (const int status = fake->enter("cuMemAllocAsync")) return status;
    if (!current) return kInvalidContext;
    if (bytes > fake->gpus[size_t(current->device)].memory_bytes) return cuda::kErrorOutOfMemory;
    void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    *pointer = reinterpret_cast<cuda::DevicePointer>(block);
    ++fake->blocks;
    return 0;
  };
  d.mem_free_async.function = [](cuda::DevicePointer pointer, CUstream_st* stream) {
    fake->last_free = stream;
    std::free(reinterpret_cast<void*>(pointer));
    --fake->blocks;
    return in_context("cuMemFreeAsync");
  };
  d.mem_host_alloc.function = [](void** pointer, size_t bytes, uint32_t) {
    if (const int status = in_context("cuMemHostAlloc")) return status;
    *pointer = std::malloc(bytes);
    ++fake->pinned;
    return 0;
  };
  d.mem_free_host.function = [](void* pointer) {
    std::free(pointer);
    --fake->pinned;
    return in_context("cuMemFreeHost");
  };
  d.memcpy_async.function = [](cuda::DevicePointer to, cuda::DevicePointer from, size_t bytes,
                               CUstream_st*) {
    if (const int status = in_context("cuMemcpyAsync")) return status;
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return 0;
  };
  d.memset_async.function = [](cuda::DevicePointer to, unsigned char value, size_t bytes,
                               CUstream_st*) {
    if (const int status = in_context("cuMemsetD8Async")) return status;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return 0;
  };
}

int load_library(CUlib_st** library, const void*, int*, void** values, uint32_t num_options, int*,
                 void**, uint32_t) {
  if (const int status = fake->enter("cuLibraryLoadData")) {
    if (num_options == 2)
      std::strncpy(static_cast<char*>(values[0]), fake->jit_log.c_str(),
                   reinterpret_cast<size_t>(values[1]));
    return status;
  }
  if (!current) return kInvalidContext;
  *library = &libraries[current->device];
  ++fake->libraries;
  return 0;
}

int launch_kernel(const cuda::LaunchSetup* setup, CUfunc_st* function, void** params, void**) {
  if (const int status = fake->enter("cuLaunchKernelEx")) return status;
  const int device = int(function - functions);
  if (!current || current->device != device) return kInvalidHandle;
  FakeLaunch launch{.grid = {setup->grid_x, setup->grid_y, setup->grid_z},
                    .block = {setup->block_x, setup->block_y, setup->block_z},
                    .shared_bytes = setup->shared_bytes,
                    .num_attributes = setup->num_attributes,
                    .device = device,
                    .stream = setup->stream};
  for (uint32_t i = 0; i < setup->num_attributes; ++i) {
    const cuda::LaunchAttribute& attribute = setup->attributes[i];
    if (attribute.id == cuda::kClusterDimension)
      launch.cluster = {attribute.cluster.x, attribute.cluster.y, attribute.cluster.z};
    if (attribute.id == cuda::kProgrammaticStreamSerialization)
      launch.programmatic_dependent_launch = attribute.enabled == 1;
  }
  fake->launches.push_back(launch);
  fake->clock_ms += 1;
  if (fake->on_launch) fake->on_launch(launch, params[0]);
  return 0;
}

void fill_kernel_calls(cuda::Driver& d) {
  d.library_load_data.function = load_library;
  d.library_unload.function = [](CUlib_st*) {
    --fake->libraries;
    return fake->enter("cuLibraryUnload");
  };
  d.library_get_kernel.function = [](CUkern_st** kernel, CUlib_st* library, const char*) {
    *kernel = reinterpret_cast<CUkern_st*>(library);
    return fake->enter("cuLibraryGetKernel");
  };
  d.kernel_get_function.function = [](CUfunc_st** function, CUkern_st* kernel) {
    *function = &functions[reinterpret_cast<CUlib_st*>(kernel)->device];
    return in_context("cuKernelGetFunction");
  };
  d.function_get_attribute.function = [](int* value, int which, CUfunc_st*) {
    *value = which == cuda::kFunctionSharedBytes  ? kStaticSharedBytes
             : which == cuda::kFunctionLocalBytes ? kLocalBytes
                                                  : kRegisters;
    return fake->enter("cuFuncGetAttribute");
  };
  d.function_set_attribute.function = [](CUfunc_st* function, int which, int value) {
    if (which == cuda::kFunctionMaxDynamicSharedBytes)
      fake->max_dynamic_shared[int(function - functions)] = value;
    return fake->enter("cuFuncSetAttribute");
  };
  d.function_load.function = [](CUfunc_st*) { return in_context("cuFuncLoad"); };
  d.launch_kernel.function = launch_kernel;
  d.tensor_map_encode_tiled.function = [](void* map, int, uint32_t rank, void*, const uint64_t*,
                                          const uint64_t* strides, const uint32_t*, const uint32_t*,
                                          int, int, int, int) {
    std::memset(map, 0xff, 128);
    std::memcpy(fake->last_tensor_map_strides, strides, (rank - 1) * sizeof(uint64_t));
    return in_context("cuTensorMapEncodeTiled");
  };
}

}  // namespace

FakeDriver::FakeDriver(std::vector<FakeGpu> fake_gpus, int driver_version,
                       std::map<std::string, int> failing_calls)
    : gpus(std::move(fake_gpus)), version(driver_version), failing(std::move(failing_calls)) {
  fake = this;
  current = nullptr;
  fill_device_calls(table_);
  fill_stream_calls(table_);
  fill_memory_calls(table_);
  fill_kernel_calls(table_);
  cuda::set_driver_for_test(&table_);
}

FakeDriver::~FakeDriver() {
  cuda::set_driver_for_test(nullptr);
  stream_pool.clear();
  event_pool.clear();
  fake = nullptr;
}

void FakeDriver::fail_at(const std::string& name, int n, int status) {
  failing_at_[name][n] = status;
}

void FakeDriver::fail_nth(long n, int status) {
  const std::lock_guard lock(mutex_);
  failing_nth_[num_calls + n] = status;
}

int FakeDriver::enter(const char* name) {
  if (on_call) on_call(name);
  const std::lock_guard lock(mutex_);
  const int n = ++calls[name];
  if (const auto nth = failing_nth_.find(++num_calls); nth != failing_nth_.end())
    return nth->second;
  if (const auto at = failing_at_.find(name); at != failing_at_.end() && at->second.contains(n))
    return at->second.at(n);
  const auto found = failing.find(name);
  return found == failing.end() ? 0 : found->second;
}

CUctx_st* FakeDriver::current_context() { return current; }
void FakeDriver::set_current_context(CUctx_st* context) { current = context; }
CUctx_st* FakeDriver::context_of(int device) { return &contexts[device]; }

}  // namespace tensorcraft::test
