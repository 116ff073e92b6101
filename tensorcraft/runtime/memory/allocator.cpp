// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/allocator.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/shortage.hpp"
#include "tensorcraft/cuda/stream_state.hpp"
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/memory/driver_allocator.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tensorcraft/runtime/memory/size_class.hpp"
#include "tensorcraft/runtime/memory/status_item.hpp"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <sys/mman.h>

namespace tensorcraft {
namespace {

// Large host memory is asked for in huge pages: the first touch of a page costs as much as writing
// it several times.
constexpr size_t kHugePage = 2 << 20, kLarge = 2 * kHugePage;

class HostAllocator final : public Allocator {
 public:
  Block allocate(size_t bytes, StreamRef) override {
    if (bytes == 0) return {};
    const size_t rounded = memory::round_up(bytes, memory::kGranule);
    const size_t alignment = bytes < kLarge ? memory::kGranule : kHugePage;
    void* data = nullptr;
    with_reclaimers(bytes, [&] {
      if (rounded < bytes || posix_memalign(&data, alignment, rounded) != 0)
        fail(ErrorKind::out_of_memory, "out of host memory: ", bytes, " bytes were asked for");
    });
    if (bytes >= kLarge) madvise(data, rounded, MADV_HUGEPAGE);  // a hint, which may be refused
    allocations_.fetch_add(1, std::memory_order_relaxed);
    blocks_.fetch_add(1, std::memory_order_relaxed);
    raise_peak(bytes_.fetch_add(int64_t(bytes), std::memory_order_relaxed) + int64_t(bytes));
    return {data, bytes};
  }
  void deallocate(Block block, StreamRef) noexcept override {
    if (!block.data) return;
    std::free(block.data);
    blocks_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(int64_t(block.bytes), std::memory_order_relaxed);
  }
  void record(const void*, StreamRef) override {}  // work of the host is done when a call returns
  size_t trim() override { return 0; }
  AllocatorStatistics statistics() const override {
    AllocatorStatistics now{.live_blocks = blocks_, .live_bytes = bytes_};
    now.used = now.reserved = now.live_bytes;
    now.peak_used = now.peak_reserved = peak_;
    now.allocations = now.driver_allocations = allocations_;
    return now;
  }

 private:
  void raise_peak(int64_t bytes) {
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < bytes && !peak_.compare_exchange_weak(peak, bytes, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int64_t> blocks_{0}, bytes_{0}, peak_{0}, allocations_{0};
  status::Source source_{
      [this] { return std::vector{memory::status_item("memory", "cpu", statistics())}; }};
};

// Holds the allocators of a CUDA device for one driver: a test may put another driver in its place.
struct Node {
  const uint64_t driver;
  const int device;
  Node* const next;
  memory::DriverAllocator of_driver;
  MemoryPool pinned{memory::pinned_memory_device(device),
                    {.quota = memory::most_pinned_bytes(), .kind = "pinned"}};
  MemoryPool pool{memory::cuda_memory_device(device), {.host = &pinned, .kind = "memory"}};
};

// A list that only grows and is read without a lock, since a child may be forked while another
// thread would hold it. Leaked: tensors with static storage may be freed after every destructor
// here ran.
constinit std::atomic<Node*> nodes = nullptr;

Node* find(int device) {
  const uint64_t driver = cuda::driver_number();
  Node* node = nodes;
  while (node && (node->device != device || node->driver != driver)) node = node->next;
  return node;
}

void recording_begins(int device) noexcept {
  if (Node* const node = find(device)) node->pool.before_recording();
}

// Trims too, as memory that reclaimers give is only cached until then.
bool relieve_shortage(int device) noexcept {
  if (!find(device)) return false;
  try {
    Allocator& source = allocator(Device::cuda(device));
    const size_t reclaimed = source.reclaim(std::numeric_limits<size_t>::max());
    return source.trim() > 0 || reclaimed > 0;
  } catch (const std::exception& error) {
    log_error(join("no memory was given back for a launch: ", error.what()));
    return false;
  }
}

Node& node_of(int device) {
  if (Node* const known = find(device)) return *known;
  static constinit FirstMade<std::mutex> mutex;
  cuda::require_usable();
  device_info(Device::cuda(device));  // a device that does not exist is refused here
  const std::lock_guard lock(*mutex);
  if (Node* const known = find(device)) return *known;
  cuda::on_stream_end(MemoryPool::stream_ends_everywhere);
  cuda::on_recording(recording_begins);
  cuda::on_shortage(relieve_shortage);
  auto* const made = new Node{cuda::driver_number(), device, nodes, {}};
  nodes = made;
  return *made;
}

}  // namespace

size_t bytes_of(DType dtype, int64_t elements) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(size_t(elements), dtype_bytes(dtype), &bytes))
    fail(ErrorKind::out_of_memory, elements, " elements of ", dtype,
         " are more bytes than 64 bits count");
  return bytes;
}

MemoryPool& MemoryPool::instance(Device device) {
  if (!device.is_cuda())
    fail(ErrorKind::value, "MemoryPool::instance: ", device, " has no pool; give a CUDA device");
  return node_of(device.index).pool;
}

MemoryPool& pinned_pool(int device) { return node_of(device).pinned; }

namespace {

bool has_pool(Device device) { return device.is_cuda() && config().gpu_allocator == "pool"; }

}  // namespace

std::vector<PoolPiece> snapshot(Device device) {
  if (!has_pool(device)) return {};
  return MemoryPool::instance(device).snapshot();
}

void set_quota(Device device, int64_t bytes) {
  if (bytes < 0)
    fail(ErrorKind::value, "set_quota: ", bytes,
         " bytes cannot be a quota; give a number of bytes, or 0 for none but the device's");
  if (!has_pool(device))
    fail(ErrorKind::unsupported, "set_quota: the memory of ", device,
         " comes from no pool; a GPU's does unless the setting gpu_allocator is driver");
  MemoryPool::instance(device).set_quota(size_t(bytes));
}

Allocator& allocator(Device device) {
  static constinit FirstMade<HostAllocator> host;
  if (!device.is_cuda()) return *host;
  Node& node = node_of(device.index);
  if (has_pool(device)) return node.pool;
  return node.of_driver;
}

}  // namespace tensorcraft
