// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/size_class.hpp"
#include "tensorcraft/runtime/memory/timeline.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tensorcraft::memory {

struct Segment;

// A piece of a segment: free, or handed out.
struct Chunk {
  std::byte* data = nullptr;
  size_t bytes = 0;  // a multiple of the granule
  Segment* segment = nullptr;
  Chunk *before = nullptr, *after = nullptr;   // its neighbours in the segment
  Chunk *previous = nullptr, *next = nullptr;  // in the bin of its free list
  uint32_t list = 0;                           // that it is in, if it is free
  bool free = false;
  Uses uses;  // what a free one may still be used by; of one in use, streams besides its own

  // These describe a block that is in use.
  size_t requested = 0;
  uint32_t lane = 0;     // of the stream that it was allocated on
  uint64_t born_in = 0;  // the recording that it was allocated in
  uint32_t holds = 0;    // graphs that own it
  bool dropped = false;  // by the caller; graphs still own it
};

// Memory that the device gave at once. It goes back when it is one free chunk.
struct Segment {
  std::byte* data = nullptr;
  size_t bytes = 0;
  uint32_t home = 0;  // the lane that it was taken for
  Chunk* first = nullptr;
};

// Free chunks by size. Finding one takes the same time whatever their number.
class FreeList {
 public:
  void insert(Chunk* chunk);
  void remove(Chunk* chunk);
  // One of at least so many bytes, of the least bin that has one; null if there is none.
  Chunk* find(size_t bytes) const;
  // The first chunk for which `accepts` holds, from the least that fits.
  template <class Accepts>
  Chunk* find_if(size_t bytes, const Accepts& accepts) const {
    for (int bin = next_bin(bin_of(bytes)); bin < kBins; bin = next_bin(bin + 1))
      for (Chunk* chunk = heads_[size_t(bin)]; chunk; chunk = chunk->next)
        if (chunk->bytes >= bytes && accepts(*chunk)) return chunk;
    return nullptr;
  }

 private:
  int next_bin(int from) const;  // kBins if all from there on are empty

  std::array<Chunk*, size_t(kBins)> heads_{};
  std::array<uint64_t, size_t(kBins + 63) / 64> filled_{};
};

// Segments cut into chunks that lie beside each other without a gap. Free chunks are in one of
// several lists; two neighbours of one list are never both free, since they are merged.
class Heap {
 public:
  // The list of a lane, and that of chunks that several lanes may still use.
  static constexpr uint32_t kMixed = 0;
  static uint32_t list_of(uint32_t lane) { return lane + 1; }

  // A free chunk that is all of a new segment, in the list of its home.
  Chunk* add(void* memory, size_t bytes, uint32_t home);
  // Forgets a segment that is one free chunk.
  void remove(Segment* segment);
  // Takes a free chunk out of its list. What is more than `bytes` stays free, with the same uses.
  void take(Chunk* chunk, size_t bytes);
  // Puts a chunk that is in use, with its uses set, into the list they ask for.
  void give(Chunk* chunk);
  // Merges free neighbours of different lists where `accepts` holds for both.
  template <class Accepts>
  void merge_all(const Accepts& accepts) {
    for (const auto& [data, segment] : segments_)
      for (Chunk* chunk = segment->first; chunk; chunk = chunk->after)
        while (chunk->free && chunk->after && chunk->after->free && accepts(*chunk) &&
               accepts(*chunk->after)) {
          list(chunk->list).remove(chunk);
          list(chunk->after->list).remove(chunk->after);
          absorb(chunk, chunk->after);
          enlist(chunk);
        }
  }

  FreeList& list(uint32_t index) {
    while (lists_.size() <= index) lists_.push_back(std::make_unique<FreeList>());
    return *lists_[index];
  }
  uint32_t num_lists() const { return uint32_t(lists_.size()); }
  Chunk* find(const void* data) const;  // the chunk in use that begins there; null if there is none
  const std::unordered_map<std::byte*, Segment*>& segments() const { return segments_; }
  // Segments that are one free chunk.
  std::vector<Segment*> unused() const;

  size_t reserved() const { return reserved_; }
  size_t cached() const { return cached_; }
  size_t num_used() const { return used_.size(); }
  size_t num_free() const { return num_free_; }
  size_t largest_free() const;  // bytes of a chunk

 private:
  Chunk* make_chunk();
  void drop_chunk(Chunk* chunk);
  static uint32_t list_for(const Chunk& chunk);
  void enlist(Chunk* chunk);
  void absorb(Chunk* chunk, Chunk* after);
  void enter(Chunk* chunk);  // into used_
  void leave(Chunk* chunk);

  std::deque<Chunk> chunks_;
  std::vector<Chunk*> spare_;
  std::deque<Segment> segment_pool_;
  std::vector<Segment*> spare_segments_;
  std::unordered_map<std::byte*, Segment*> segments_;
  std::unordered_map<const void*, Chunk*> used_;
  decltype(used_)::node_type
      spare_entry_;  // the last that left: the next one costs no allocation of the host's
  std::vector<std::unique_ptr<FreeList>> lists_;
  size_t reserved_ = 0, cached_ = 0, num_free_ = 0;
};

}  // namespace tensorcraft::memory
