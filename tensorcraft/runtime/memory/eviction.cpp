// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/eviction.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <iterator>

namespace tensorcraft::memory {

Movable& EvictionOrder::add(size_t bytes, void* device_ptr) {
  Movable& block = resident_.emplace_back();
  block.id = ++last_id_;
  block.size = bytes;
  block.device_ptr = device_ptr;
  block.last_access = ++clock_;
  blocks_.emplace(block.id, std::prev(resident_.end()));
  return block;
}

void EvictionOrder::remove(BlockId id) {
  const auto known = blocks_.find(id);
  (known->second->on_gpu() ? resident_ : evicted_).erase(known->second);
  blocks_.erase(known);
}

Movable& EvictionOrder::get(BlockId id, std::string_view call) {
  const auto known = blocks_.find(id);
  if (known == blocks_.end())
    fail(ErrorKind::value, call, ": there is no block ", id,
         " in this pool; it was released, or is another pool's");
  return *known->second;
}

void EvictionOrder::touch(Movable& block) {
  block.last_access = ++clock_;
  if (block.on_gpu()) resident_.splice(resident_.end(), resident_, blocks_.at(block.id));
}

void EvictionOrder::moved(Movable& block) {
  const auto at = blocks_.at(block.id);
  if (block.on_gpu()) {
    resident_.splice(resident_.end(), evicted_, at);
    block.last_access = ++clock_;
  } else {
    evicted_.splice(evicted_.end(), resident_, at);
  }
}

std::vector<MemoryBlock> EvictionOrder::all() const {
  std::vector<MemoryBlock> blocks(resident_.begin(), resident_.end());
  blocks.insert(blocks.end(), evicted_.begin(), evicted_.end());
  std::ranges::sort(blocks, {}, &MemoryBlock::last_access);
  return blocks;
}

}  // namespace tensorcraft::memory
