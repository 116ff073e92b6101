// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/allocator.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/graph_pool.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <sys/mman.h>

namespace tensorcraft {
namespace {

constexpr size_t kAlignment = 256;
// Large host memory is asked for in huge pages: the first touch of a page costs as much as writing
// it several times.
constexpr size_t kHugePage = 2 << 20, kLarge = 2 * kHugePage;

class CountingAllocator : public Allocator {
 public:
  Block allocate(size_t bytes, StreamRef stream) final {
    if (bytes == 0) return {};
    Block block{take(bytes, stream), bytes};
    blocks_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(int64_t(bytes), std::memory_order_relaxed);
    return block;
  }
  void deallocate(Block block, StreamRef stream) noexcept final {
    if (!block.data) return;
    give(block.data, stream);
    blocks_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(int64_t(block.bytes), std::memory_order_relaxed);
  }
  AllocatorStatistics statistics() const final { return {blocks_.load(), bytes_.load()}; }

 protected:
  virtual void* take(size_t bytes, StreamRef stream) = 0;
  virtual void give(void* data, StreamRef stream) noexcept = 0;

 private:
  std::atomic<int64_t> blocks_{0}, bytes_{0};
};

class HostAllocator final : public CountingAllocator {
  void* take(size_t bytes, StreamRef) override {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const size_t alignment = bytes < kLarge ? kAlignment : kHugePage;
    void* data = nullptr;
    if (rounded < bytes || posix_memalign(&data, alignment, rounded) != 0)
      fail(ErrorKind::out_of_memory, "out of host memory: ", bytes, " bytes were asked for");
    if (bytes >= kLarge) madvise(data, rounded, MADV_HUGEPAGE);  // a hint, which may be refused
    return data;
  }
  void give(void* data, StreamRef) noexcept override { std::free(data); }
};

class CudaAllocator final : public CountingAllocator {
  void* take(size_t bytes, StreamRef stream) override {
    void* const of_graph = graph_pool::take(bytes, stream);
    return of_graph ? of_graph : cuda::allocate(bytes, stream);
  }
  void give(void* data, StreamRef stream) noexcept override {
    if (!graph_pool::give(data, stream)) cuda::deallocate(data, stream);
  }
};

// The allocators of the CUDA devices: a list that only grows and is read without a lock, since a
// child may be forked while another thread would hold it.
struct Node {
  const int device;
  Node* const next;
  CudaAllocator allocator;
};

Node* find(Node* first, int device) {
  while (first && first->device != device) first = first->next;
  return first;
}

}  // namespace

size_t bytes_of(DType dtype, int64_t elements) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(size_t(elements), dtype_bytes(dtype), &bytes))
    fail(ErrorKind::out_of_memory, elements, " elements of ", dtype,
         " are more bytes than 64 bits count");
  return bytes;
}

Allocator& allocator(Device device) {
  // Leaked on purpose: tensors with static storage may be freed after every destructor here ran.
  static auto* host = new HostAllocator;
  if (!device.is_cuda()) return *host;
  static std::mutex& mutex = *new std::mutex;
  static std::atomic<Node*>& first = *new std::atomic<Node*>(nullptr);
  // First of all: what frees a tensor may not fail, even if the driver is gone.
  if (Node* const known = find(first, device.index)) return known->allocator;
  cuda::require_usable();
  device_info(device);  // a device that does not exist is refused here
  const std::lock_guard lock(mutex);
  if (!find(first, device.index)) first = new Node{device.index, first, {}};
  return find(first, device.index)->allocator;
}

}  // namespace tensorcraft
