// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/block.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tensorcraft::memory {

void FreeList::insert(Chunk* chunk) {
  const int bin = bin_of(chunk->bytes);
  Chunk*& head = heads_[size_t(bin)];
  chunk->previous = nullptr;
  chunk->next = head;
  if (head) head->previous = chunk;
  head = chunk;
  filled_[size_t(bin) / 64] |= uint64_t(1) << (bin % 64);
}

void FreeList::remove(Chunk* chunk) {
  if (chunk->next) chunk->next->previous = chunk->previous;
  if (chunk->previous) {
    chunk->previous->next = chunk->next;
    return;
  }
  const int bin = bin_of(chunk->bytes);
  heads_[size_t(bin)] = chunk->next;
  if (!chunk->next) filled_[size_t(bin) / 64] &= ~(uint64_t(1) << (bin % 64));
}

int FreeList::next_bin(int from) const {
  for (size_t word = size_t(from) / 64; word < filled_.size(); ++word) {
    uint64_t bits = filled_[word];
    if (word == size_t(from) / 64) bits &= ~uint64_t(0) << (from % 64);
    if (bits) return int(word * 64) + std::countr_zero(bits);
  }
  return kBins;
}

Chunk* FreeList::find(size_t bytes) const {
  int bin = bin_of(bytes);
  if (least_of_bin(bin) < bytes) {  // a size of over 256 MiB, of which there are few
    for (Chunk* chunk = heads_[size_t(bin)]; chunk; chunk = chunk->next)
      if (chunk->bytes >= bytes) return chunk;
    ++bin;
  }
  bin = next_bin(bin);
  return bin < kBins ? heads_[size_t(bin)] : nullptr;
}

Chunk* Heap::make_chunk() {
  if (spare_.empty()) return &chunks_.emplace_back();
  Chunk* const chunk = spare_.back();
  spare_.pop_back();
  return chunk;
}

void Heap::drop_chunk(Chunk* chunk) {
  chunk->uses.clear();
  chunk->free = false;
  spare_.push_back(chunk);
}

void Heap::enter(Chunk* chunk) {
  if (spare_entry_.empty()) {
    used_.emplace(chunk->data, chunk);
    return;
  }
  spare_entry_.key() = chunk->data;
  spare_entry_.mapped() = chunk;
  used_.insert(std::move(spare_entry_));
}

void Heap::leave(Chunk* chunk) { spare_entry_ = used_.extract(chunk->data); }

// A chunk that one lane alone uses, or none, is that lane's.
uint32_t Heap::list_for(const Chunk& chunk) {
  const Uses& uses = chunk.uses;
  return uses.size() > 1 ? kMixed : list_of(uses.empty() ? chunk.segment->home : uses.front().lane);
}

void Heap::enlist(Chunk* chunk) {
  chunk->list = list_for(*chunk);
  list(chunk->list).insert(chunk);
}

// Neither is in a list.
void Heap::absorb(Chunk* chunk, Chunk* after) {
  chunk->bytes += after->bytes;
  chunk->after = after->after;
  if (chunk->after) chunk->after->before = chunk;
  for (const Use use : after->uses) add_use(chunk->uses, use);
  drop_chunk(after);
  --num_free_;
}

Chunk* Heap::add(void* memory, size_t bytes, uint32_t home) {
  Segment* segment = nullptr;
  if (spare_segments_.empty()) {
    segment = &segment_pool_.emplace_back();
  } else {
    segment = spare_segments_.back();
    spare_segments_.pop_back();
  }
  Chunk* const chunk = make_chunk();
  *segment = {static_cast<std::byte*>(memory), bytes, home, chunk};
  segments_.emplace(segment->data, segment);
  chunk->data = segment->data;
  chunk->bytes = bytes;
  chunk->segment = segment;
  chunk->before = chunk->after = nullptr;
  chunk->free = true;
  enlist(chunk);
  reserved_ += bytes;
  cached_ += bytes;
  ++num_free_;
  return chunk;
}

void Heap::remove(Segment* segment) {
  Chunk* const chunk = segment->first;
  list(chunk->list).remove(chunk);
  reserved_ -= segment->bytes;
  cached_ -= segment->bytes;
  --num_free_;
  segments_.erase(segment->data);
  drop_chunk(chunk);
  spare_segments_.push_back(segment);
}

void Heap::take(Chunk* chunk, size_t bytes) {
  const size_t left = chunk->bytes - bytes;
  Chunk* const rest = left ? make_chunk() : nullptr;
  enter(chunk);
  list(chunk->list).remove(chunk);
  chunk->free = false;
  --num_free_;
  cached_ -= chunk->bytes;
  if (!rest) return;
  rest->data = chunk->data + bytes;
  rest->bytes = left;
  rest->segment = chunk->segment;
  rest->before = chunk;
  rest->after = chunk->after;
  if (rest->after) rest->after->before = rest;
  rest->uses = chunk->uses;
  rest->free = true;
  chunk->after = rest;
  chunk->bytes = bytes;
  enlist(rest);
  ++num_free_;
  cached_ += left;
}

void Heap::give(Chunk* chunk) {
  leave(chunk);
  chunk->free = true;
  cached_ += chunk->bytes;
  ++num_free_;
  const uint32_t own = list_for(*chunk);  // its neighbours of this list have no uses of other lanes
  const auto joins = [own](const Chunk* other) {
    return other && other->free && other->list == own;
  };
  if (Chunk* const after = chunk->after; joins(after)) {
    list(own).remove(after);
    absorb(chunk, after);
  }
  if (Chunk* const before = chunk->before; joins(before)) {
    list(own).remove(before);
    absorb(before, chunk);
    chunk = before;
  }
  enlist(chunk);
}

Chunk* Heap::find(const void* data) const {
  const auto known = used_.find(data);
  return known == used_.end() ? nullptr : known->second;
}

size_t Heap::largest_free() const {
  size_t largest = 0;
  for (const auto& [data, segment] : segments_)
    for (const Chunk* chunk = segment->first; chunk; chunk = chunk->after)
      if (chunk->free) largest = std::max(largest, chunk->bytes);
  return largest;
}

std::vector<Segment*> Heap::unused() const {
  std::vector<Segment*> found;
  for (const auto& [data, segment] : segments_)
    if (segment->first->free && !segment->first->after) found.push_back(segment);
  return found;
}

}  // namespace tensorcraft::memory
