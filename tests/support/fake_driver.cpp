// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_driver.hpp"

#include "tests/support/fake_device.hpp"
#include "tests/support/fake_graph.hpp"
#include "tests/support/fake_stream.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

struct CUctx_st {
  int device;
};
struct CUevent_st {
  int device;
  double at_ms = 0;
  CUstream_st* stream = nullptr;
  uint64_t position = 0;
};
// Also what handles of kernels and functions point to: a library has one kernel.
struct CUlib_st {
  int device;
  tensorcraft::test::FakeKernel kernel;
};

namespace tensorcraft::test {
namespace {

constexpr int kInvalidContext = 201, kInvalidHandle = 400, kNoBinary = 209,
              kCaptureUnsupported = 900;
constexpr int kStaticSharedBytes = 1024, kLocalBytes = 16, kRegisters = 42, kMaxThreads = 512;
constexpr int kMaxDevices = 8;

FakeDriver* fake = nullptr;
CUctx_st contexts[kMaxDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
// Handles live as long as the fake. Leaked, as threads may use the driver while the process ends.
auto& stream_pool = *new std::deque<CUstream_st>;
auto& event_pool = *new std::deque<CUevent_st>;
auto& library_pool = *new std::deque<CUlib_st>;
thread_local CUctx_st* current = nullptr;

using Lock = std::lock_guard<std::recursive_mutex>;

// The answer of a call that needs a current context.
int in_context(const char* name) {
  const int status = fake->enter(name);
  return status ? status : current ? 0 : kInvalidContext;
}

// The stream of a handle; the first streams of the pool are the devices' default ones.
CUstream_st& stream_of(CUstream_st* handle) {
  if (!handle) return stream_pool[size_t(current->device)];
  if (handle->destroyed) fake->add_damage("a stream is used after it was destroyed");
  return *handle;
}

void enqueue(CUstream_st* handle, std::function<void()> work) {
  CUstream_st& stream = stream_of(handle);
  if (stream.graph) {
    stream.graph->nodes.push_back([work](CUstream_st* on) { enqueue(on, work); });
    return;
  }
  stream.enqueue(std::move(work));
  if (!fake->deferred) stream.run_all();
}

void fill_stream_calls(cuda::Driver& d) {
  d.context_synchronize.function = [] {
    if (const int status = in_context("cuCtxSynchronize")) return status;
    const Lock lock(fake->device_mutex);
    for (CUstream_st& stream : stream_pool)
      if (stream.device == current->device) stream.run_all();
    return 0;
  };
  d.stream_create.function = [](CUstream_st** stream, uint32_t) {
    if (const int status = in_context("cuStreamCreate")) return status;
    const Lock lock(fake->device_mutex);
    *stream = &stream_pool.emplace_back(current->device);
    ++fake->streams;
    return 0;
  };
  // What it holds is still done.
  d.stream_destroy.function = [](CUstream_st* stream) {
    if (const int status = in_context("cuStreamDestroy")) return status;
    const Lock lock(fake->device_mutex);
    stream_of(stream).destroyed = true;
    --fake->streams;
    return 0;
  };
  d.stream_synchronize.function = [](CUstream_st* stream) {
    if (const int status = in_context("cuStreamSynchronize")) return status;
    const Lock lock(fake->device_mutex);
    stream_of(stream).run_all();
    return 0;
  };
  d.stream_wait_event.function = [](CUstream_st* stream, CUevent_st* event, uint32_t) {
    if (const int status = in_context("cuStreamWaitEvent")) return status;
    const Lock lock(fake->device_mutex);
    if (!event->stream) return 0;
    enqueue(stream,
            [before = event->stream, position = event->position] { before->run_until(position); });
    return 0;
  };
  d.stream_get_id.function = [](CUstream_st* stream, uint64_t* number) {
    if (const int status = in_context("cuStreamGetId")) return status;
    if (stream && stream->graph) return kCaptureUnsupported;
    *number = fake->streams_before + reinterpret_cast<uint64_t>(&stream_of(stream));
    return 0;
  };
  d.stream_is_capturing.function = [](CUstream_st* stream, int* state) {
    *state = fake->capturing || (stream && stream->graph);
    return in_context("cuStreamIsCapturing");
  };
}

void fill_event_calls(cuda::Driver& d) {
  d.event_create.function = [](CUevent_st** event, uint32_t) {
    if (const int status = in_context("cuEventCreate")) return status;
    const Lock lock(fake->device_mutex);
    *event = &event_pool.emplace_back(CUevent_st{.device = current->device});
    ++fake->events;
    return 0;
  };
  d.event_destroy.function = [](CUevent_st*) {
    if (const int status = in_context("cuEventDestroy")) return status;
    --fake->events;
    return 0;
  };
  d.event_record.function = [](CUevent_st* event, CUstream_st* stream) {
    if (stream && stream->device != event->device) return kInvalidHandle;
    if (const int status = in_context("cuEventRecord")) return status;
    const Lock lock(fake->device_mutex);
    CUstream_st& on = stream_of(stream);
    event->at_ms = fake->clock_ms;
    event->stream = &on;
    event->position = on.enqueued;
    return 0;
  };
  // Each question brings the stream one step further.
  d.event_query.function = [](CUevent_st* event) -> int {
    if (const int status = in_context("cuEventQuery")) return status;
    const Lock lock(fake->device_mutex);
    if (!event->stream || event->stream->done >= event->position) return 0;
    event->stream->run_until(event->stream->done + 1);
    return cuda::kErrorNotReady;
  };
  d.event_synchronize.function = [](CUevent_st* event) {
    if (const int status = in_context("cuEventSynchronize")) return status;
    const Lock lock(fake->device_mutex);
    if (event->stream) event->stream->run_until(event->position);
    return 0;
  };
  d.event_elapsed_time.function = [](float* ms, CUevent_st* begin, CUevent_st* end) {
    *ms = float(end->at_ms - begin->at_ms);
    return in_context("cuEventElapsedTime");
  };
}

int take(cuda::DevicePointer* pointer, size_t bytes) {
  const size_t limit = fake->gpus[size_t(current->device)].memory_bytes;
  const size_t used = fake->memory.bytes_in_use(current->device);
  if (bytes > limit || used > limit - bytes) return cuda::kErrorOutOfMemory;
  void* const block = fake->memory.allocate(bytes, current->device);
  *pointer = reinterpret_cast<cuda::DevicePointer>(block);
  return block ? 0 : cuda::kErrorOutOfMemory;
}

void give(cuda::DevicePointer pointer) {
  if (!fake->memory.release(reinterpret_cast<void*>(pointer)))
    fake->add_damage("memory is freed twice, or was never given out");
}

int allocate(cuda::DevicePointer* pointer, size_t bytes, CUstream_st*) {
  if (const int status = in_context("cuMemAllocAsync")) return status;
  const Lock lock(fake->device_mutex);
  const int status = take(pointer, bytes);
  if (status == 0) ++fake->blocks;
  return status;
}

// Memory that is not stream-ordered: alive() does not count it.
int allocate_slab(cuda::DevicePointer* pointer, size_t bytes) {
  if (const int status = in_context("cuMemAlloc")) return status;
  const Lock lock(fake->device_mutex);
  return take(pointer, bytes);
}

// Waits for the device, as the driver does.
int deallocate_slab(cuda::DevicePointer pointer) {
  if (const int status = in_context("cuMemFree")) return status;
  const Lock lock(fake->device_mutex);
  for (CUstream_st& stream : stream_pool)
    if (stream.device == current->device) stream.run_all();
  give(pointer);
  return 0;
}

int deallocate(cuda::DevicePointer pointer, CUstream_st* stream) {
  if (const int status = in_context("cuMemFreeAsync")) return status;
  const Lock lock(fake->device_mutex);
  fake->last_free = stream;
  --fake->blocks;
  enqueue(stream, [pointer] { give(pointer); });
  return 0;
}

// False, with a note, for memory of a device that is not, or no longer, given out.
bool may_access(const void* address, size_t bytes) {
  if (!fake->memory.contains(address) || fake->memory.is_alive(address, bytes)) return true;
  fake->add_damage("a copy touches memory that is not given out");
  return false;
}

bool is_pageable(const void* address) {
  if (fake->memory.contains(address)) return false;
  const auto* const at = static_cast<const char*>(address);
  for (const auto& [block, bytes] : fake->pinned_memory)
    if (at >= block && at < static_cast<const char*>(block) + bytes) return false;
  return true;
}

// As the driver documents: pageable memory is read before the call returns, and written too.
int copy(cuda::DevicePointer to_address, cuda::DevicePointer from_address, size_t bytes,
         CUstream_st* stream) {
  if (const int status = in_context("cuMemcpyAsync")) return status;
  const Lock lock(fake->device_mutex);
  void* const to = reinterpret_cast<void*>(to_address);
  const void* from = reinterpret_cast<const void*>(from_address);
  // Without access of one device to the other's memory, as an H200's driver answers.
  const int there = fake->memory.device_of(to), here = fake->memory.device_of(from);
  if (there >= 0 && here >= 0 && there != here) return cuda::kErrorInvalidValue;
  std::shared_ptr<std::vector<char>> staged;
  if (is_pageable(from)) {
    const auto* const begin = static_cast<const char*>(from);
    staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    from = staged->data();
  }
  enqueue(stream, [to, from, bytes, staged] {
    if (may_access(to, bytes) && may_access(from, bytes)) std::memmove(to, from, bytes);
  });
  if (is_pageable(to)) stream_of(stream).run_all();
  return 0;
}

int fill(cuda::DevicePointer address, unsigned char value, size_t bytes, CUstream_st* stream) {
  if (const int status = in_context("cuMemsetD8Async")) return status;
  const Lock lock(fake->device_mutex);
  enqueue(stream, [to = reinterpret_cast<void*>(address), value, bytes] {
    if (may_access(to, bytes)) std::memset(to, value, bytes);
  });
  return 0;
}

void fill_memory_calls(cuda::Driver& d) {
  d.device_get_default_mem_pool.function = [](CUmemPoolHandle_st** pool, int) {
    *pool = nullptr;
    return fake->enter("cuDeviceGetDefaultMemPool");
  };
  d.mem_pool_set_attribute.function = [](CUmemPoolHandle_st*, int, void*) {
    return fake->enter("cuMemPoolSetAttribute");
  };
  d.mem_alloc_async.function = allocate;
  d.mem_free_async.function = deallocate;
  d.mem_alloc.function = allocate_slab;
  d.mem_free.function = deallocate_slab;
  d.mem_get_info.function = [](size_t* free, size_t* total) {
    if (const int status = in_context("cuMemGetInfo")) return status;
    const Lock lock(fake->device_mutex);
    *total = fake->gpus[size_t(current->device)].memory_bytes;
    *free = *total - fake->memory.bytes_in_use(current->device);
    return 0;
  };
  d.mem_host_alloc.function = [](void** pointer, size_t bytes, uint32_t) {
    if (const int status = in_context("cuMemHostAlloc")) return status;
    const Lock lock(fake->device_mutex);
    constexpr size_t kPage = 4096;
    *pointer = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    fake->pinned_memory[*pointer] = bytes;
    ++fake->pinned;
    return 0;
  };
  d.mem_free_host.function = [](void* pointer) {
    if (const int status = in_context("cuMemFreeHost")) return status;
    const Lock lock(fake->device_mutex);
    fake->pinned_memory.erase(pointer);
    std::free(pointer);
    --fake->pinned;
    return 0;
  };
  d.memcpy_async.function = copy;
  d.memset_async.function = fill;
}

int load_library(CUlib_st** library, const void* image, int*, void** values, uint32_t num_options,
                 int*, void**, uint32_t) {
  if (const int status = in_context("cuLibraryLoadData")) {
    if (num_options == 2)
      std::strncpy(static_cast<char*>(values[0]), fake->jit_log.c_str(),
                   reinterpret_cast<size_t>(values[1]));
    return status;
  }
  FakeKernel kernel;
  if (fake->load_kernel) {
    kernel = fake->load_kernel(static_cast<const char*>(image));
    if (!kernel.run) return kNoBinary;
  }
  const Lock lock(fake->device_mutex);
  *library = &library_pool.emplace_back(CUlib_st{current->device, std::move(kernel)});
  ++fake->libraries;
  return 0;
}

CUlib_st& library_of(CUfunc_st* function) { return *reinterpret_cast<CUlib_st*>(function); }

// A copy of a launch's parameters, aligned as a tensor map in them must be.
struct Parameters {
  alignas(64) std::byte bytes[4096];
};

void run_kernel(const FakeKernel& kernel, const FakeLaunch& launch, const void* params) {
  try {
    kernel.run(launch, params);
  } catch (const std::exception& error) {
    fake->add_damage(error.what());
    fake->faults.lose(kLaunchFailed);
  }
}

int launch_kernel(const cuda::LaunchSetup* setup, CUfunc_st* function, void** params, void**) {
  if (const int status = fake->enter("cuLaunchKernelEx")) return status;
  const CUlib_st& library = library_of(function);
  if (!current || current->device != library.device) return kInvalidHandle;
  FakeLaunch launch{.grid = {setup->grid_x, setup->grid_y, setup->grid_z},
                    .block = {setup->block_x, setup->block_y, setup->block_z},
                    .shared_bytes = setup->shared_bytes,
                    .num_attributes = setup->num_attributes,
                    .device = library.device,
                    .stream = setup->stream};
  for (uint32_t i = 0; i < setup->num_attributes; ++i) {
    const cuda::LaunchAttribute& attribute = setup->attributes[i];
    if (attribute.id == cuda::kClusterDimension)
      launch.cluster = {attribute.cluster.x, attribute.cluster.y, attribute.cluster.z};
    if (attribute.id == cuda::kProgrammaticStreamSerialization)
      launch.programmatic_dependent_launch = attribute.enabled == 1;
  }
  const Lock lock(fake->device_mutex);
  if (CUstream_st* const stream = setup->stream; stream && stream->graph) {
    // It counts and takes its time when the graph is launched, and computes nothing.
    stream->graph->nodes.push_back([launch](CUstream_st*) {
      fake->launches.push_back(launch);
      fake->clock_ms += 1;
    });
    return 0;
  }
  fake->launches.push_back(launch);
  fake->clock_ms += 1;
  if (fake->on_launch) fake->on_launch(launch, params[0]);
  if (!library.kernel.run) return 0;
  const auto copied = std::make_shared<Parameters>();
  std::memcpy(copied->bytes, params[0], library.kernel.params_bytes);
  enqueue(setup->stream,
          [kernel = library.kernel, launch, copied] { run_kernel(kernel, launch, copied->bytes); });
  return 0;
}

void fill_kernel_calls(cuda::Driver& d) {
  d.library_load_data.function = load_library;
  d.library_unload.function = [](CUlib_st*) {
    if (const int status = fake->enter("cuLibraryUnload")) return status;
    --fake->libraries;
    return 0;
  };
  d.library_get_kernel.function = [](CUkern_st** kernel, CUlib_st* library, const char*) {
    *kernel = reinterpret_cast<CUkern_st*>(library);
    return fake->enter("cuLibraryGetKernel");
  };
  d.kernel_get_function.function = [](CUfunc_st** function, CUkern_st* kernel) {
    *function = reinterpret_cast<CUfunc_st*>(kernel);
    return in_context("cuKernelGetFunction");
  };
  d.function_get_attribute.function = [](int* value, int which, CUfunc_st*) {
    *value = which == cuda::kFunctionSharedBytes  ? kStaticSharedBytes
             : which == cuda::kFunctionLocalBytes ? kLocalBytes
             : which == cuda::kFunctionMaxThreads ? kMaxThreads
                                                  : kRegisters;
    return fake->enter("cuFuncGetAttribute");
  };
  d.function_set_attribute.function = [](CUfunc_st* function, int which, int value) {
    if (const int status = fake->enter("cuFuncSetAttribute")) return status;
    const Lock lock(fake->device_mutex);
    if (which == cuda::kFunctionMaxDynamicSharedBytes)
      fake->max_dynamic_shared[library_of(function).device] = value;
    return 0;
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
  d.tensor_map_replace_address.function = [](void*, void*) { return 0; };
}

}  // namespace

FakeDriver::FakeDriver(std::vector<FakeGpu> fake_gpus, int driver_version,
                       std::map<std::string, int> failing_calls)
    : gpus(std::move(fake_gpus)), version(driver_version), failing(std::move(failing_calls)) {
  fake = this;
  current = nullptr;
  for (int device = 0; device < kMaxDevices; ++device) stream_pool.emplace_back(device);
  fill_device_calls(table_);
  fill_stream_calls(table_);
  fill_graph_calls(table_);
  fill_event_calls(table_);
  fill_memory_calls(table_);
  fill_kernel_calls(table_);
  cuda::set_driver_for_test(&table_);
}

FakeDriver* FakeDriver::installed() { return fake; }

FakeDriver::~FakeDriver() {
  cuda::set_driver_for_test(nullptr);
  stream_pool.clear();
  event_pool.clear();
  library_pool.clear();
  for (const auto& [block, bytes] : pinned_memory) std::free(block);
  fake = nullptr;
}

void FakeDriver::fail_at(const std::string& name, int n, int status) {
  failing_at_[name][n] = status;
}

int FakeDriver::enter(const char* name) {
  if (on_call) on_call(name);
  const int fault = faults.next();
  const std::lock_guard lock(mutex_);
  const int n = ++calls[name];
  if (fault) return fault;
  if (const auto at = failing_at_.find(name); at != failing_at_.end() && at->second.contains(n))
    return at->second.at(n);
  const auto found = failing.find(name);
  return found == failing.end() ? 0 : found->second;
}

void FakeDriver::add_damage(const std::string& text) {
  const std::lock_guard lock(mutex_);
  damage_ += ' ' + text + ';';
}

std::string FakeDriver::damage() {
  const Lock device(device_mutex);
  const std::lock_guard lock(mutex_);
  return damage_ + memory.damage();
}

CUctx_st* FakeDriver::current_context() { return current; }
void FakeDriver::set_current_context(CUctx_st* context) { current = context; }
CUctx_st* FakeDriver::context_of(int device) { return &contexts[device]; }

}  // namespace tensorcraft::test
