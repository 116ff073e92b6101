// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/runtime/memory/reclaimer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace tensorcraft {

// One allocation: its address and the size that was asked for.
struct Block {
  void* data = nullptr;  // null if there are no bytes
  size_t bytes = 0;      // as asked for
};

// `quota` is what the device has if none was set. At any time reserved = used + cached and
// available = quota - used. `used` is live_bytes, what rounding adds to it, and what graphs own
// alone.
struct AllocatorStatistics {
  // Handed out, as it was asked for.
  int64_t live_blocks = 0;
  int64_t live_bytes = 0;
  // Bytes, of an allocator that keeps memory; of any other `used` is live_bytes.
  int64_t quota = 0, reserved = 0, used = 0, cached = 0, available = 0;
  int64_t peak_used = 0, peak_reserved = 0;
  int64_t captured = 0;  // of `used`: freed by the caller, and owned by a graph
  int64_t free_blocks = 0;
  // Counts since the allocator was made. A reuse is an allocation without the driver.
  int64_t allocations = 0, reuses = 0, driver_allocations = 0;
  int64_t evictions = 0, restores = 0;
  int64_t evicted_blocks = 0, evicted_bytes = 0, pinned_blocks = 0;  // of blocks that may be moved
};

// The source of tensors' memory. Calls are stream-ordered: a block may be used by work enqueued on
// `stream` after allocate(), and deallocate() waits for work enqueued on `stream` before it.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // 256-byte aligned; {nullptr, 0} for 0 bytes; kind out_of_memory if there is no room.
  virtual Block allocate(size_t bytes, StreamRef stream) = 0;
  virtual void deallocate(Block block, StreamRef stream) noexcept = 0;  // null is allowed
  // Work that is enqueued on `stream` until the block goes back uses it too; the stream must live
  // until then. Kind value for memory that the allocator did not hand out.
  virtual void record(const void* data, StreamRef stream) = 0;
  // Gives memory that nothing uses back to the driver, after the work that did; returns how much.
  virtual size_t trim() = 0;
  virtual AllocatorStatistics statistics() const = 0;  // of this moment

  // Asked for memory before an allocation fails for want of room, as long as it lives.
  void add(std::weak_ptr<Reclaimer> reclaimer) { reclaimers_.add(std::move(reclaimer)); }
  // Asks the reclaimers for so many bytes; returns how many they gave.
  size_t reclaim(size_t bytes) { return reclaimers_.reclaim(bytes); }

 protected:
  // Returns the result of `take`. If it finds no room for `bytes`, which it may set, it has changed
  // nothing and holds no lock: it is called again each time that reclaimers gave something.
  template <class Take>
  auto with_reclaimers(const size_t& bytes, const Take& take) {
    for (;;) try {
        return take();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::out_of_memory || !fits(bytes) || reclaim(bytes) == 0) throw;
      }
  }

 private:
  // Could there be so much room, if nothing was in use?
  bool fits(size_t bytes) const {
    const int64_t quota = statistics().quota;
    return quota == 0 || bytes <= size_t(quota);
  }

  memory::Reclaimers reclaimers_;
};

// Bytes of so many elements; kind out_of_memory if 64 bits do not count them.
size_t bytes_of(DType dtype, int64_t elements);

// The allocator of a device. One a device, alive until the process ends.
Allocator& allocator(Device device);

}  // namespace tensorcraft
