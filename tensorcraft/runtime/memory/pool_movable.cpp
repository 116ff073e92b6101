// SPDX-License-Identifier: Apache-2.0
// Blocks that move between the device and the host. Both moves are in the order of the stream that
// asks for them: the memory a block leaves is reused after the copy, and its next user waits for
// it.
#include "tensorcraft/runtime/memory/hold.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft {

using memory::Chunk;
using memory::Movable;
using memory::Use;

BlockId MemoryPool::create(size_t bytes, StreamRef stream) {
  if (bytes == 0)
    fail(ErrorKind::value, "create: a block that can be moved has at least 1 byte, got 0");
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  return with_reclaimers(bytes, [&] {
    const std::lock_guard lock(mutex_);
    take_back_of_graphs();
    const Caller by = caller(stream, state);
    Movable& block = movable_.add(bytes, obtain(bytes, by)->data + check_.zone());
    block.uses = {timeline_.now(by.lane)};
    if (by.capture) pin_for_graph(block, by);
    return block.id;
  });
}

void MemoryPool::order_after(const Movable& block, const Caller& by) {
  for (const Use use : block.uses) timeline_.order(use, by.lane);
}

void MemoryPool::release(BlockId id, StreamRef stream) {
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  Movable& block = movable_.get(id, "release");
  refuse_pinned(block, "release");
  const Caller by = caller(stream, state);
  order_after(block, by);
  if (block.on_host()) {
    host_->deallocate({block.host_data, block.size}, stream);
    --counts_.evicted_blocks;
    counts_.evicted_bytes -= int64_t(block.size);
  } else {
    drop(in_use(block.device_ptr, "release"), by);
  }
  movable_.remove(id);
}

void MemoryPool::refuse_pinned(const Movable& block, const char* call) const {
  if (block.pins > 0)
    fail(ErrorKind::value, call, ": block ", block.id, " has ", block.pins,
         " pins, of its users or of graphs that were recorded with it; unpin() it, or drop the "
         "tensors that pin() gave, first");
}

void* MemoryPool::pin(BlockId id, StreamRef stream) {
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  size_t bytes = 0;
  return with_reclaimers(bytes, [&] {
    const std::lock_guard lock(mutex_);
    take_back_of_graphs();
    const Caller by = caller(stream, state);
    Movable& block = movable_.get(id, "pin");
    bytes = block.size;
    if (block.on_host()) move_to_device(block, by, "pin");
    if (by.capture) {
      pin_for_graph(block, by);
    } else {
      order_after(block, by);
    }
    if (block.pins++ == 0) ++counts_.pinned_blocks;
    movable_.touch(block);
    return block.device_ptr;
  });
}

void MemoryPool::unpin(BlockId id, StreamRef stream) {
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  Movable& block = movable_.get(id, "unpin");
  const int of_graphs = pins_of_graphs(id);
  if (block.pins <= of_graphs)
    fail(ErrorKind::value, "unpin: block ", id, " is not pinned; one unpin belongs to each pin");
  const Caller by = caller(stream, state);
  add_use(block.uses, timeline_.now(by.lane));
  if (--block.pins == 0) --counts_.pinned_blocks;
}

// A graph that was recorded with the address keeps the block where it is.
void MemoryPool::pin_for_graph(Movable& block, const Caller& by) {
  std::vector<BlockId>& pinned = hold_of(by).pinned;
  if (std::ranges::find(pinned, block.id) != pinned.end()) return;
  pinned.push_back(block.id);
  if (block.pins++ == 0) ++counts_.pinned_blocks;
}

void MemoryPool::unpin_for_graph(BlockId id) {
  Movable& block = movable_.get(id, "unpin");
  if (--block.pins == 0) --counts_.pinned_blocks;
}

int MemoryPool::pins_of_graphs(BlockId id) const {
  return int(std::ranges::count_if(holds_, [id](const auto& hold) {
    return std::ranges::find(hold.second->pinned, id) != hold.second->pinned.end();
  }));
}

void MemoryPool::touch(BlockId id) {
  const std::lock_guard lock(mutex_);
  movable_.touch(movable_.get(id, "touch"));
}

void MemoryPool::evict(BlockId id, StreamRef stream) {
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  Movable& block = movable_.get(id, "evict");
  refuse_pinned(block, "evict");
  if (!host_)
    fail(ErrorKind::value, "evict: the pool of ", device_->name(),
         " was made without host memory to evict to; give PoolOptions::host");
  if (block.on_gpu()) move_to_host(block, caller(stream, state), "evict");
}

void MemoryPool::restore(BlockId id, StreamRef stream) {
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  size_t bytes = 0;
  with_reclaimers(bytes, [&] {
    const std::lock_guard lock(mutex_);
    take_back_of_graphs();
    Movable& block = movable_.get(id, "restore");
    bytes = block.size;
    if (block.on_host()) move_to_device(block, caller(stream, state), "restore");
    movable_.touch(block);
  });
}

MemoryBlock MemoryPool::block(BlockId id) const {
  const std::lock_guard lock(mutex_);
  return movable_.get(id, "block");
}

std::vector<MemoryBlock> MemoryPool::blocks() const {
  const std::lock_guard lock(mutex_);
  return movable_.all();
}

// False if there is no block to evict, or no room for it on the host.
bool MemoryPool::evict_one(const Caller& by) {
  if (!host_ || by.capture) return false;
  Movable* const block = movable_.victim([&](const Movable& candidate) {
    return std::ranges::all_of(candidate.uses,
                               [&](Use use) { return timeline_.can_order(use, by.lane); });
  });
  if (!block) return false;
  try {
    move_to_host(*block, by, "evict");
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    return false;
  }
}

void MemoryPool::refuse_recorded(const Caller& by, const char* call) const {
  if (by.capture)
    fail(ErrorKind::value, call,
         ": a block cannot be moved while the stream is recorded into a graph; restore or evict it "
         "before the recording");
}

void MemoryPool::move_to_host(Movable& block, const Caller& by, const char* call) {
  refuse_recorded(by, call);
  order_after(block, by);
  const Block host = host_->allocate(block.size, by.stream);
  try {
    device_->copy(host.data, block.device_ptr, block.size, by.stream);
  } catch (...) {
    host_->deallocate(host, by.stream);
    throw;
  }
  Chunk* const chunk = in_use(block.device_ptr, call);
  block.uses = {timeline_.now(by.lane)};
  block.device_ptr = nullptr;
  block.host_data = host.data;
  movable_.moved(block);
  ++counts_.evictions;
  ++counts_.evicted_blocks;
  counts_.evicted_bytes += int64_t(block.size);
  drop(chunk, by);
}

void MemoryPool::move_to_device(Movable& block, const Caller& by, const char* call) {
  refuse_recorded(by, call);
  Chunk* const chunk = obtain(block.size, by);
  try {
    order_after(block, by);
    device_->copy(chunk->data + check_.zone(), block.host_data, block.size, by.stream);
  } catch (...) {
    drop(chunk, by);
    throw;
  }
  host_->deallocate({block.host_data, block.size}, by.stream);
  block.uses = {timeline_.now(by.lane)};
  block.host_data = nullptr;
  block.device_ptr = chunk->data + check_.zone();
  movable_.moved(block);
  ++counts_.restores;
  --counts_.evicted_blocks;
  counts_.evicted_bytes -= int64_t(block.size);
}

}  // namespace tensorcraft
