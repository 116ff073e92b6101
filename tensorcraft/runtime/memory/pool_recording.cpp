// SPDX-License-Identifier: Apache-2.0
// Blocks of recordings. The graph runs again and again, on any stream, so it owns what it was
// recorded with: such a block is never moved, and given out again within the recording alone.
#include "tensorcraft/runtime/memory/hold.hpp"

#include <algorithm>

namespace tensorcraft {

using memory::Chunk;

void MemoryPool::before_recording() noexcept {
  if (!device_->usable()) return;
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  timeline_.close_all();
}

MemoryPool::Hold& MemoryPool::hold_of(const Caller& by) {
  const auto known = holds_.find(by.capture);
  if (known != holds_.end()) return *known->second;
  auto made = std::make_unique<Hold>(Hold{.pool = *this, .capture = by.capture});
  // First: the graph may be gone as soon as it has the hold.
  Hold& hold = *holds_.emplace(by.capture, std::move(made)).first->second;
  try {
    device_->give_to_graph(by.stream, graph_is_gone, &hold);
  } catch (...) {
    holds_.erase(by.capture);
    throw;
  }
  return hold;
}

void MemoryPool::hold(Chunk* chunk, const Caller& by) {
  Hold& hold = hold_of(by);
  if (std::ranges::find(hold.chunks, chunk) != hold.chunks.end()) return;
  hold.chunks.push_back(chunk);
  ++chunk->holds;
}

// For a call that is recorded. What serves it must be idle whatever stream the graph runs on, and
// neither the device nor another stream can be waited for.
Chunk* MemoryPool::find_recorded(size_t size, const Caller& by) {
  Chunk* best = nullptr;
  for (Chunk* const chunk : hold_of(by).chunks) {
    const bool serves = chunk->dropped && chunk->born_in == by.capture && chunk->holds == 1 &&
                        chunk->uses.empty() && chunk->lane == by.lane && chunk->bytes >= size;
    if (serves && (!best || chunk->bytes < best->bytes)) best = chunk;
  }
  if (best && best->bytes <= 2 * size) {
    best->dropped = false;
    counts_.captured -= int64_t(best->bytes);
    return best;
  }
  if (Chunk* const chunk = find_passed(size, by)) return chunk;
  if (Chunk* const chunk = grow(size, by.lane)) return chunk;
  if (trim_to(device_is_full_ ? 0 : quota_ - size, false) > 0) return grow(size, by.lane);
  return nullptr;
}

// Called by the driver on any thread, which may not wait for one that calls the driver.
void MemoryPool::graph_is_gone(void* owned) {
  Hold* const hold = static_cast<Hold*>(owned);
  std::atomic<Hold*>& gone = hold->pool.gone_;
  hold->next = gone.load(std::memory_order_relaxed);
  while (!gone.compare_exchange_weak(hold->next, hold, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
}

void MemoryPool::take_back_of_graphs() {
  if (!gone_.load(std::memory_order_relaxed)) return;
  for (Hold* hold = gone_.exchange(nullptr, std::memory_order_acquire); hold;) {
    for (Chunk* const chunk : hold->chunks) {
      if (chunk->born_in == hold->capture) chunk->born_in = 0;
      if (--chunk->holds == 0 && chunk->dropped) release(chunk);
    }
    for (const BlockId id : hold->pinned) unpin_for_graph(id);
    Hold* const next = hold->next;
    holds_.erase(hold->capture);
    hold = next;
  }
}

}  // namespace tensorcraft
