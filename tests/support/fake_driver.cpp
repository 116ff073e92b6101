// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_driver.hpp"

#include "tensorcraft/cuda/stream_value.hpp"
#include "tests/support/fake_device.hpp"
#include "tests/support/fake_graph.hpp"
#include "tests/support/fake_kernels.hpp"
#include "tests/support/fake_stream.hpp"

#include <algorithm>
#include <atomic>
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

namespace tensorcraft::test {
namespace {

constexpr int kInvalidContext = 201, kInvalidHandle = 400, kCaptureUnsupported = 900;
constexpr int kMaxDevices = 8;

FakeDriver* fake = nullptr;
CUctx_st contexts[kMaxDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
// Handles live as long as the fake. Leaked, as threads may use the driver while the process ends.
auto& stream_pool = *new std::deque<CUstream_st>;
auto& event_pool = *new std::deque<CUevent_st>;
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

}  // namespace

void enqueue(CUstream_st* handle, std::function<void()> work) {
  CUstream_st& stream = stream_of(handle);
  if (stream.graph) {
    stream.graph->nodes.push_back([work](CUstream_st* on) { enqueue(on, work); });
    return;
  }
  stream.enqueue(std::move(work));
  if (!fake->deferred) stream.run_all();
}

namespace {

int create_stream(CUstream_st** stream, const char* name) {
  if (const int status = in_context(name)) return status;
  const Lock lock(fake->device_mutex);
  *stream = &stream_pool.emplace_back(current->device);
  ++fake->streams;
  return 0;
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
    return create_stream(stream, "cuStreamCreate");
  };
  d.stream_create_with_priority.function = [](CUstream_st** stream, uint32_t, int priority) {
    return fake->last_priority = priority, create_stream(stream, "cuStreamCreateWithPriority");
  };
  // Work that the stream holds is still done.
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
  d.profiler_start.function = [] { return in_context("cuProfilerStart"); };
  d.profiler_stop.function = [] { return in_context("cuProfilerStop"); };
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

// Work of other streams, until the word is what the wait is for: a real device would wait for ever.
void wait_for(const uint32_t* word, uint32_t value, WaitCondition condition) {
  const std::atomic_ref<uint32_t> now(*const_cast<uint32_t*>(word));
  while (!cuda::is_met(condition, now.load(), value)) {
    const auto next = std::ranges::find_if(
        stream_pool, [](const CUstream_st& s) { return !s.running && !s.queue.empty(); });
    if (next == stream_pool.end()) return fake->add_damage("a stream waits for a value for ever");
    next->run_until(next->done + 1);
  }
}

void fill_value_calls(cuda::Driver& d) {
  d.stream_wait_value.function = [](CUstream_st* stream, cuda::DevicePointer address,
                                    uint32_t value, uint32_t condition) {
    if (const int status = in_context("cuStreamWaitValue32")) return status;
    const Lock lock(fake->device_mutex);
    enqueue(stream, [word = reinterpret_cast<const uint32_t*>(address), value, condition] {
      wait_for(word, value, WaitCondition(condition));
    });
    return 0;
  };
  d.stream_write_value.function = [](CUstream_st* stream, cuda::DevicePointer address,
                                     uint32_t value, uint32_t) {
    if (const int status = in_context("cuStreamWriteValue32")) return status;
    const Lock lock(fake->device_mutex);
    enqueue(stream, [word = reinterpret_cast<uint32_t*>(address), value] {
      std::atomic_ref(*word).store(value);
    });
    return 0;
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

// Between two devices the driver needs no access of one to the other's memory.
int copy_to_peer(cuda::DevicePointer to_address, CUctx_st*, cuda::DevicePointer from_address,
                 CUctx_st*, size_t bytes, CUstream_st* stream) {
  if (const int status = in_context("cuMemcpyPeerAsync")) return status;
  const Lock lock(fake->device_mutex);
  enqueue(stream, [to = reinterpret_cast<void*>(to_address),
                   from = reinterpret_cast<const void*>(from_address), bytes] {
    if (may_access(to, bytes) && may_access(from, bytes)) std::memmove(to, from, bytes);
  });
  return 0;
}

int pointer_attribute(void* value, int which, cuda::DevicePointer address) {
  if (const int status = in_context("cuPointerGetAttribute")) return status;
  const Lock lock(fake->device_mutex);
  const void* const at = reinterpret_cast<const void*>(address);
  if (is_pageable(at)) return cuda::kErrorInvalidValue;
  if (which == cuda::kPointerDevicePointer)
    *static_cast<cuda::DevicePointer*>(value) = address;
  else
    *static_cast<int*>(value) = fake->memory.contains(at) ? 2 : 1;
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
  d.memcpy_peer_async.function = copy_to_peer;
  d.pointer_get_attribute.function = pointer_attribute;
  d.memset_async.function = fill;
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
  fill_value_calls(table_);
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
  forget_kernels();
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
int FakeDriver::current_device() { return current->device; }

}  // namespace tensorcraft::test
