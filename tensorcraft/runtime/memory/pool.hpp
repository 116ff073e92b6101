// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/runtime/memory/allocator.hpp"
#include "tensorcraft/runtime/memory/block.hpp"
#include "tensorcraft/runtime/memory/eviction.hpp"
#include "tensorcraft/runtime/memory/memory_check.hpp"
#include "tensorcraft/runtime/memory/memory_device.hpp"
#include "tensorcraft/runtime/memory/status_item.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tensorcraft {

// How a pool is made.
struct PoolOptions {
  // The quota bounds used and cached bytes together; 0 for none but what the device gives.
  size_t quota = 0;
  // Where blocks go that are evicted; without it none are.
  Allocator* host = nullptr;
  memory::CheckOptions checks = {};
  // The name by which `tensorcraft top` calls it.
  const char* kind = "pool";
};

// A piece of a pool's memory, for those who look for where it went.
struct PoolPiece {
  // Pieces of equal segment lie beside each other.
  const void* segment = nullptr;
  const void* data = nullptr;
  size_t bytes = 0;
  bool free = false, captured = false;
};

// The memory of one device: taken from the driver in segments, cut into blocks of size classes, and
// kept when they are freed. Memory is reused on its stream without waiting, and on another stream
// once the work that used it is done, or after it by an event. Used and cached bytes together never
// exceed the quota. Blocks that a recording allocates or frees belong to its graph until the graph
// is gone. Safe for concurrent use.
class MemoryPool final : public Allocator {
 public:
  // A stream that it was used on outlives it, or stream_ends() says that it ends.
  explicit MemoryPool(std::unique_ptr<memory::MemoryDevice> device,
                      const PoolOptions& options = {});
  // Waits for the work on what was freed. What is in use is abandoned.
  ~MemoryPool() override;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // The pool of a CUDA device, which tensors use unless the configuration names the driver's.
  static MemoryPool& instance(Device device = Device::cuda());

  // Kind out_of_memory beyond the quota ("Memory pool quota exceeded: requested R bytes, used U,
  // quota Q", with the largest free run if as much is free in pieces) and if the driver has no
  // room, each after cached memory went back, unpinned blocks were evicted and reclaimers were
  // asked; nothing else changes then.
  Block allocate(size_t bytes, StreamRef stream) override;
  // Logs what free() refuses.
  void deallocate(Block block, StreamRef stream) noexcept override;
  // Like deallocate(); null is allowed. Kind value for memory that is no block in use of this pool.
  void free(void* data, StreamRef stream);
  void record(const void* data, StreamRef stream) override;
  size_t trim() override;
  // Gives all cached memory back; blocks in use stay.
  void clear() { trim(); }
  // Kind value for less than what is in use; cached memory above it goes back. 0 for none.
  void set_quota(size_t bytes);

  // All numbers are of one moment, whatever other threads do.
  AllocatorStatistics statistics() const override;
  // By address.
  std::vector<PoolPiece> snapshot() const;

  // Blocks that may be moved to the host, by id; calls refuse an unknown one with kind value.
  BlockId create(size_t bytes, StreamRef stream);
  // The memory is reused after all earlier work on the block. A pinned one is refused, kind value.
  void release(BlockId id, StreamRef stream);
  // The address, which holds until the matching unpin(); restores the block first. Work that is
  // enqueued on `stream` later comes after all earlier work on the block.
  void* pin(BlockId id, StreamRef stream);
  // Work that was enqueued on `stream` up to now uses the block.
  void unpin(BlockId id, StreamRef stream);
  // Makes it the most recently used one.
  void touch(BlockId id);
  // Moves it to the host, or back, in the order of `stream`. A pinned block is refused with kind
  // value; out_of_memory if there is no room.
  void evict(BlockId id, StreamRef stream);
  void restore(BlockId id, StreamRef stream);
  MemoryBlock block(BlockId id) const;
  // All, the least recently used first.
  std::vector<MemoryBlock> blocks() const;

  // A recording is about to begin on the device. Streams cannot be asked then how far they are, so
  // what was freed up to now is marked: once it is idle, it serves the recording.
  void before_recording() noexcept;
  // A stream of the device is about to be destroyed.
  void stream_ends(StreamRef stream) noexcept;
  // All pools of the process are told: what a Stream does once the pool of its device is made.
  static void stream_ends_everywhere(StreamRef stream) noexcept;

 private:
  struct Hold;
  struct Caller {
    StreamRef stream;
    uint32_t lane;
    uint64_t capture;
  };
  Caller caller(StreamRef stream, memory::StreamState state);

  memory::Chunk* obtain(size_t bytes, const Caller& by);
  memory::Chunk* find(size_t size, const Caller& by);
  memory::Chunk* find_passed(size_t size, const Caller& by);
  memory::Chunk* find_after_others(size_t size, const Caller& by);
  memory::Chunk* find_recorded(size_t size, const Caller& by);
  memory::Chunk* grow(size_t size, uint32_t lane);
  size_t trim_to(size_t reserved, bool may_wait);
  bool is_passed(memory::Segment* segment, bool may_wait);
  std::string fragments(size_t bytes) const;
  [[noreturn]] void fail_for_room(size_t bytes) const;
  memory::Chunk* in_use(const void* data, const char* call) const;
  void take_back(void* data, StreamRef stream, memory::StreamState state);
  void drop(memory::Chunk* chunk, const Caller& by);
  void release(memory::Chunk* chunk);
  void give(memory::Chunk* chunk);

  Hold& hold_of(const Caller& by);
  void hold(memory::Chunk* chunk, const Caller& by);
  void take_back_of_graphs();
  static void graph_is_gone(void* owned);

  bool evict_one(const Caller& by);
  void move_to_host(memory::Movable& block, const Caller& by, const char* call);
  void move_to_device(memory::Movable& block, const Caller& by, const char* call);
  void order_after(const memory::Movable& block, const Caller& by);
  void refuse_pinned(const memory::Movable& block, const char* call) const;
  void refuse_recorded(const Caller& by, const char* call) const;
  void pin_for_graph(memory::Movable& block, const Caller& by);
  void unpin_for_graph(BlockId id);
  int pins_of_graphs(BlockId id) const;

  bool has_quota() const { return quota_ < memory::kMaxBytes; }
  size_t used() const { return heap_.reserved() - heap_.cached(); }

  const std::unique_ptr<memory::MemoryDevice> device_;
  Allocator* const host_;
  const size_t total_bytes_;
  mutable ForkSafeMutex mutex_;  // guards all below but gone_
  size_t quota_;
  memory::Timeline timeline_;
  memory::Heap heap_;
  mutable memory::EvictionOrder movable_;
  memory::MemoryCheck check_;
  std::unordered_map<uint64_t, std::unique_ptr<Hold>> holds_;  // by recording
  std::atomic<Hold*> gone_{nullptr};                           // of graphs that are gone, as a list
  AllocatorStatistics counts_;
  bool merged_ = true;                    // no chunk was freed since all that can be merged was
  bool device_is_full_ = false;           // what the last growth failed of
  std::optional<status::Source> source_;  // ends first
};

// These ask the pool that allocator(device) is: its pieces, none if it is no pool; and set_quota(),
// kind unsupported if it is no pool, value for a quota below 0.
std::vector<PoolPiece> snapshot(Device device);
void set_quota(Device device, int64_t bytes);

}  // namespace tensorcraft
