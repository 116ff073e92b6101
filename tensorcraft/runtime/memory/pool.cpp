// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/pool.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/runtime/memory/hold.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace tensorcraft {

using memory::Chunk;
using memory::Heap;
using memory::Segment;
using memory::Use;

namespace {

// A segment is at least this large, and grows with the pool, so that there are few of them: what is
// left over of one is at most a sixteenth of all.
constexpr size_t kSegment = size_t(2) << 20, kMaxSegment = size_t(1) << 30;
constexpr size_t kGrowth = 16;

size_t segment_bytes(size_t size, size_t reserved) {
  const size_t wanted = std::clamp(reserved / kGrowth, kSegment, kMaxSegment);
  return memory::round_up(std::max(size, wanted), kSegment);
}

// Logs the current exception: an Error comes from the device; any other means that the host has no
// memory.
void log_failure(const char* what) noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    log_error(join(what, ": ", error.what()));
  }
}

// Every pool of the process.
struct Pools {
  ForkSafeMutex mutex;
  std::vector<MemoryPool*> all;
};
Pools& pools() {
  static constinit FirstMade<Pools> known;
  return *known;
}

}  // namespace

MemoryPool::MemoryPool(std::unique_ptr<memory::MemoryDevice> device, const PoolOptions& options)
    : device_(std::move(device)),
      host_(options.host),
      total_bytes_(device_->total_bytes()),
      quota_(options.quota ? options.quota : memory::kMaxBytes),
      timeline_(*device_),
      check_(*device_, options.checks) {
  {
    const std::lock_guard lock(pools().mutex);
    pools().all.push_back(this);
  }
  source_.emplace([this, kind = options.kind] {
    return std::vector{memory::status_item(kind, device_->name(), statistics())};
  });
}

MemoryPool::~MemoryPool() {
  if (!device_->usable()) return;  // in a forked child another thread may have held the lock
  {
    const std::lock_guard lock(pools().mutex);
    std::erase(pools().all, this);
  }
  try {
    trim();
  } catch (...) {
    log_failure("MemoryPool: cached memory was not given back");
  }
}

MemoryPool::Caller MemoryPool::caller(StreamRef stream, memory::StreamState state) {
  return {stream, timeline_.lane_of(stream, state.id), state.capture};
}

Block MemoryPool::allocate(size_t bytes, StreamRef stream) {
  if (bytes == 0) return {};
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  return with_reclaimers(bytes, [&]() -> Block {
    const std::lock_guard lock(mutex_);
    take_back_of_graphs();
    return {obtain(bytes, caller(stream, state))->data + check_.zone(), bytes};
  });
}

// A chunk in use for so many bytes of a caller's.
Chunk* MemoryPool::obtain(size_t bytes, const Caller& by) {
  // Checked before anything is added to it.
  const size_t size =
      bytes > memory::kMaxBytes ? 0 : memory::class_bytes(bytes + 2 * check_.zone());
  if (size == 0 || size > quota_) fail_for_room(bytes);
  device_is_full_ = false;
  const int64_t driver_allocations = counts_.driver_allocations;
  Chunk* chunk = by.capture ? find_recorded(size, by) : find(size, by);
  if (!chunk) fail_for_room(bytes);
  if (chunk->free) heap_.take(chunk, size);
  chunk->uses.clear();
  chunk->requested = bytes;
  chunk->lane = by.lane;
  chunk->born_in = by.capture;
  if (by.capture) hold(chunk, by);
  ++counts_.allocations;
  if (counts_.driver_allocations == driver_allocations) ++counts_.reuses;
  ++counts_.live_blocks;
  counts_.live_bytes += int64_t(bytes);
  counts_.peak_used = std::max(counts_.peak_used, int64_t(used()));
  if (check_.zone()) check_.hand_out(*chunk, by.stream, by.capture != 0);
  return chunk;
}

// From what costs nothing to what costs most.
Chunk* MemoryPool::find(size_t size, const Caller& by) {
  if (Chunk* const own = heap_.list(Heap::list_of(by.lane)).find(size)) return own;
  do {
    if (Chunk* const chunk = find_passed(size, by)) return chunk;
    if (Chunk* const chunk = grow(size, by.lane)) return chunk;
    if (Chunk* const chunk = find_after_others(size, by)) return chunk;
    if (trim_to(quota_ - size, true) > 0)
      if (Chunk* const chunk = grow(size, by.lane)) return chunk;
    if (device_is_full_ && trim_to(0, true) > 0)
      if (Chunk* const chunk = grow(size, by.lane)) return chunk;
  } while (evict_one(by));
  return nullptr;
}

// A chunk that nothing of another stream uses any more.
Chunk* MemoryPool::find_passed(size_t size, const Caller& by) {
  timeline_.poll();
  const auto is_ready = [&](const Chunk& chunk) {
    return std::ranges::all_of(chunk.uses, [&](Use use) {
      return (use.lane == by.lane && !by.capture) || timeline_.passed(use);
    });
  };
  for (int round = 0; round < 2; ++round) {
    for (uint32_t list = 0; list < heap_.num_lists(); ++list)
      if (Chunk* const chunk = heap_.list(list).find(size); chunk && is_ready(*chunk)) return chunk;
    if (merged_) break;
    heap_.merge_all(is_ready);
    merged_ = true;
  }
  return nullptr;
}

// The least chunk, after the work of the streams that may still use it.
Chunk* MemoryPool::find_after_others(size_t size, const Caller& by) {
  heap_.merge_all([](const Chunk&) { return true; });
  const auto can_wait = [&](const Chunk& chunk) {
    return std::ranges::all_of(chunk.uses,
                               [&](Use use) { return timeline_.can_order(use, by.lane); });
  };
  Chunk* best = nullptr;
  for (uint32_t list = 0; list < heap_.num_lists(); ++list) {
    Chunk* const chunk = heap_.list(list).find_if(size, can_wait);
    if (chunk && (!best || chunk->bytes < best->bytes)) best = chunk;
  }
  if (!best) return nullptr;
  for (const Use use : best->uses) timeline_.order(use, by.lane);
  return best;
}

// A new segment; null beyond the quota and if the device has no room.
Chunk* MemoryPool::grow(size_t size, uint32_t lane) {
  const size_t room = quota_ - heap_.reserved();
  if (size > room) return nullptr;
  const size_t wanted =
      std::min(segment_bytes(size, heap_.reserved()), room / memory::kGranule * memory::kGranule);
  void* data = nullptr;
  size_t taken = wanted;
  data = device_->take(wanted);
  if (!data && wanted > size) data = device_->take(taken = size);
  device_is_full_ = !data;
  if (!data) return nullptr;
  ++counts_.driver_allocations;
  Chunk* const chunk = heap_.add(data, taken, lane);
  counts_.peak_reserved = std::max(counts_.peak_reserved, int64_t(heap_.reserved()));
  return chunk;
}

bool MemoryPool::is_passed(Segment* segment, bool may_wait) {
  const memory::Uses uses = segment->first->uses;
  return std::ranges::all_of(
      uses, [&](Use use) { return timeline_.passed(use) || (may_wait && timeline_.wait(use)); });
}

// Gives whole free segments back until no more than so many bytes are reserved; how many went.
size_t MemoryPool::trim_to(size_t reserved, bool may_wait) {
  if (heap_.reserved() <= reserved) return 0;
  for (Chunk* chunk : check_.empty_quarantine()) release(chunk);
  heap_.merge_all([](const Chunk&) { return true; });
  size_t given = 0;
  for (Segment* const segment : heap_.unused()) {
    if (heap_.reserved() <= reserved) break;
    if (!is_passed(segment, may_wait)) continue;
    given += segment->bytes;
    device_->give(segment->data);
    heap_.remove(segment);
  }
  return given;
}

size_t MemoryPool::trim() {
  device_->require_usable();
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  const size_t given = trim_to(0, true);
  timeline_.poll();  // streams without cached memory have marks too
  timeline_.drop_spare_marks();
  return given;
}

// Why so many bytes find no place if as many are free; empty if they are not.
std::string MemoryPool::fragments(size_t bytes) const {
  const size_t free = quota_ - used();
  if (free < bytes) return "";
  const size_t run = std::max(heap_.largest_free(), quota_ - heap_.reserved());
  return join("\n  of the ", free, " bytes that are free the largest run is ", run,
              " (fragmentation ", 100 * (free - run) / free,
              " %), as blocks in use lie between; allocate the large blocks first, and free those "
              "that lie beside each other");
}

void MemoryPool::fail_for_room(size_t bytes) const {
  if (has_quota() && !device_is_full_)
    fail(ErrorKind::out_of_memory, "Memory pool quota exceeded: requested ", bytes, " bytes, used ",
         used(), ", quota ", quota_, fragments(bytes), "\n  free memory of ", device_->name(),
         ", use smaller batches, or raise the quota of its pool");
  fail(ErrorKind::out_of_memory, "out of memory: ", bytes, " bytes were asked for on ",
       device_->name(), ", where ", device_->free_bytes(), " of ", device_->total_bytes(),
       " bytes are free; free tensors or use smaller batches");
}

Chunk* MemoryPool::in_use(const void* data, const char* call) const {
  Chunk* const chunk = heap_.find(static_cast<const std::byte*>(data) - check_.zone());
  if (!chunk)
    fail(ErrorKind::value, call, ": ", data, " is no block in use of the pool of ", device_->name(),
         "; it was freed before, or comes from elsewhere", check_.past(data));
  if (chunk->dropped)
    fail(ErrorKind::value, call, ": ", data, " was freed before", check_.past(data));
  return chunk;
}

void MemoryPool::free(void* data, StreamRef stream) {
  if (!data) return;
  device_->require_usable();
  take_back(data, stream, device_->look(stream));
}

void MemoryPool::take_back(void* data, StreamRef stream, memory::StreamState state) {
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  drop(in_use(data, "free"), caller(stream, state));
}

void MemoryPool::deallocate(Block block, StreamRef stream) noexcept {
  if (!block.data) return;
  // There is no later try, so a refusal that may pass is tried once more.
  for (int attempt = 0; attempt < 2 && device_->usable(); ++attempt) {
    std::optional<memory::StreamState> state;
    try {
      state = device_->look(stream);
      return take_back(block.data, stream, *state);
    } catch (...) {
      log_failure("MemoryPool");
    }
    if (state) return;
  }
}

// The caller is done with it.
void MemoryPool::drop(Chunk* chunk, const Caller& by) {
  if (by.capture) {
    if (chunk->born_in != by.capture) {
      hold(chunk, by);
      add_use(chunk->uses, timeline_.now(by.lane));
    }
  } else {
    add_use(chunk->uses, timeline_.now(by.lane));
  }
  for (size_t i = 0; i < chunk->uses.size(); ++i)
    if (chunk->uses[i].lane != by.lane) chunk->uses[i] = timeline_.now(chunk->uses[i].lane);
  --counts_.live_blocks;
  counts_.live_bytes -= int64_t(chunk->requested);
  if (chunk->holds > 0) {
    chunk->dropped = true;
    counts_.captured += int64_t(chunk->bytes);
    return;
  }
  if (!check_.zone()) return give(chunk);
  chunk->dropped = true;
  counts_.captured += int64_t(chunk->bytes);
  const auto [wrong, leaving] = check_.take_back(*chunk, by.stream);
  if (leaving) release(leaving);
  if (!wrong.empty()) fail(ErrorKind::value, "free: ", wrong);
}

// One that was dropped is free now.
void MemoryPool::release(Chunk* chunk) {
  chunk->dropped = false;
  counts_.captured -= int64_t(chunk->bytes);
  give(chunk);
}

void MemoryPool::give(Chunk* chunk) {
  heap_.give(chunk);
  merged_ = false;
}

void MemoryPool::record(const void* data, StreamRef stream) {
  if (!data) return;
  device_->require_usable();
  const memory::StreamState state = device_->look(stream);
  const std::lock_guard lock(mutex_);
  Chunk* const chunk = in_use(data, "record");
  const Caller by = caller(stream, state);
  if (by.capture) hold(chunk, by);
  add_use(chunk->uses, {by.lane, 0});  // the epoch is that of the end
}

void MemoryPool::set_quota(size_t bytes) {
  device_->require_usable();
  if (bytes == 0) bytes = memory::kMaxBytes;
  const std::lock_guard lock(mutex_);
  take_back_of_graphs();
  trim_to(bytes, true);
  if (bytes < heap_.reserved())
    fail(ErrorKind::value, "set_quota: ", bytes, " bytes are less than the ", heap_.reserved(),
         " that ", device_->name(), " has in use, or between what is; free or evict blocks first");
  quota_ = bytes;
}

AllocatorStatistics MemoryPool::statistics() const {
  const std::lock_guard lock(mutex_);
  AllocatorStatistics now = counts_;
  now.reserved = int64_t(heap_.reserved());
  now.quota = has_quota() ? int64_t(quota_) : std::max(int64_t(total_bytes_), now.reserved);
  now.cached = int64_t(heap_.cached());
  now.used = int64_t(used());
  now.available = now.quota - now.used;
  now.free_blocks = int64_t(heap_.num_free());
  return now;
}

std::vector<PoolPiece> MemoryPool::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<PoolPiece> pieces;
  for (const auto& [data, segment] : heap_.segments())
    for (const Chunk* chunk = segment->first; chunk; chunk = chunk->after)
      pieces.push_back({.segment = segment->data,
                        .data = chunk->data,
                        .bytes = chunk->bytes,
                        .free = chunk->free,
                        .captured = chunk->holds > 0});
  std::ranges::sort(pieces, {}, &PoolPiece::data);
  return pieces;
}

void MemoryPool::stream_ends_everywhere(StreamRef stream) noexcept {
  const std::lock_guard lock(pools().mutex);
  for (MemoryPool* const pool : pools().all) pool->stream_ends(stream);
}

void MemoryPool::stream_ends(StreamRef stream) noexcept {
  if (!device_->usable()) return;
  const std::lock_guard lock(mutex_);
  timeline_.end(stream);
}

}  // namespace tensorcraft
