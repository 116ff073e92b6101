// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/graph_memory.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/relaxed_recording.hpp"
#include "tensorcraft/cuda/session.hpp"

#include <bit>
#include <memory>
#include <utility>

namespace tensorcraft::cuda {
namespace {

constexpr uint32_t kNoDestructorSync = 1, kMoveReference = 1;

// The graph that a stream is recorded into; null if it is not.
CUgraph_st* recorded_graph(const Driver& driver, StreamRef stream) {
  CUgraph_st* graph = nullptr;
  int state = 0;
  const auto status = driver.stream_get_capture_info.status(stream.handle(), &state, nullptr,
                                                            &graph, nullptr, nullptr);
  return status == kSuccess && state ? graph : nullptr;
}

// A graph owns such an object. An object that no graph took is destroyed too, and then does
// nothing.
struct Owned {
  void (*release)(void*);
  void* what;
  bool taken = true;
};

// Hands it to the graph; else the driver's refusal.
int attach(const Driver& driver, CUgraph_st* graph, void (*release)(void*), void* what) {
  const auto destroy = [](void* object) {
    const std::unique_ptr<Owned> owned(static_cast<Owned*>(object));
    if (owned->taken) owned->release(owned->what);
  };
  auto owned = std::make_unique<Owned>(Owned{release, what});
  CUuserObject_st* object = nullptr;
  if (const int status =
          driver.user_object_create.status(&object, owned.get(), destroy, 1, kNoDestructorSync))
    return status;
  Owned& given = *owned.release();
  const int status = driver.graph_retain_user_object.status(graph, object, 1, kMoveReference);
  if (status != kSuccess) {
    given.taken = false;
    driver.user_object_release.quiet(object, 1);
  }
  return status;
}

}  // namespace

GraphMemory::Block* GraphMemory::take(const Driver& driver, size_t bytes) {
  const size_t order = bytes <= kSmallest ? 0 : size_t(std::bit_width((bytes - 1) / kSmallest));
  if (Block* const block = take(order)) return block;
  DevicePointer slab = 0;
  {  // without the lock: what the driver waits for may be a block that comes back
    const RelaxedRecording relaxed(driver);
    if (driver.mem_alloc.status(&slab, kSlab) != kSuccess) return nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    slab_ = slab;
    left_ = kSlab;
  }
  return take(order);
}

GraphMemory::Block* GraphMemory::take(size_t order) {
  const std::lock_guard lock(mutex_);
  if (Block* const block = unused_[order]) {
    unused_[order] = std::exchange(block->next, nullptr);
    return block;
  }
  const size_t size = kSmallest << order;
  if (left_ < size) return nullptr;
  left_ -= size;
  return new Block{*this, std::exchange(slab_, slab_ + size), order};
}

void GraphMemory::give_back(Block& block) noexcept {
  GraphMemory& memory = block.owner;
  const std::lock_guard lock(memory.mutex_);
  block.next = std::exchange(memory.unused_[block.order], &block);
}

void* allocate_for_graph(size_t bytes, StreamRef stream) {
  if (bytes == 0 || bytes > kMaxGraphBytes || !stream.handle()) return nullptr;
  const DeviceGuard guard(stream.device());
  const Driver& driver = require_driver();
  CUgraph_st* const graph = recorded_graph(driver, stream);
  if (!graph) return nullptr;
  GraphMemory::Block* const block = device_slot(stream.device()).graph_memory.take(driver, bytes);
  if (!block) return nullptr;
  const auto give_back = [](void* owned) {
    GraphMemory::give_back(*static_cast<GraphMemory::Block*>(owned));
  };
  if (attach(driver, graph, give_back, block) == kSuccess)
    return reinterpret_cast<void*>(block->address);
  GraphMemory::give_back(*block);
  return nullptr;
}

void give_to_graph(StreamRef stream, void (*release)(void*), void* owned) {
  const DeviceGuard guard(stream.device());
  const Driver& driver = require_driver();
  CUgraph_st* const graph = recorded_graph(driver, stream);
  if (!graph) fail(ErrorKind::value, "give_to_graph: the stream is not recorded into a graph");
  check(attach(driver, graph, release, owned), driver.graph_retain_user_object.name);
}

}  // namespace tensorcraft::cuda
