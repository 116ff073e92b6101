// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/memory_device.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tensorcraft::memory {

// Work of a stream up to the end of one of its epochs: what a block may still be used by.
struct Use {
  uint32_t lane = 0;
  uint64_t epoch = 0;
  friend bool operator==(const Use&, const Use&) = default;
};
using Uses = std::vector<Use>;  // one a lane at most
// Adds what is not in `uses` yet; of one lane the later epoch counts.
void add_use(Uses& uses, Use use);

// How far the streams of a device are. Each stream has a lane, and each lane epochs: what is
// enqueued falls into the open one, which a mark closes. A use is two numbers, so it survives
// whatever becomes of the block, and needs no mark before another stream asks for it. Not safe for
// concurrent use.
class Timeline {
 public:
  explicit Timeline(MemoryDevice& device) : device_(device) {}

  uint32_t lane_of(StreamRef stream, uint64_t id);
  // Returns the use of all that the stream holds up to now. If the stream may end unseen, this
  // records a mark; if that cannot be, the next mark of the stream covers it.
  Use now(uint32_t lane) noexcept;
  // Is the work done, as far as is known, or as the device now says?
  bool passed(Use use) const { return lanes_[use.lane].passed >= use.epoch; }
  bool passed(const Uses& uses) const;
  void poll();
  // Closes the open epochs of all lanes that can be marked now.
  void close_all() noexcept;
  void drop_spare_marks() { spare_.clear(); }
  // False if the use cannot be waited for: its stream is recorded into a graph.
  bool can_order(Use use, uint32_t lane) const;
  // The lane's later work comes after the use; kind value if it cannot be waited for.
  void order(Use use, uint32_t lane);
  // The host waits. False if it cannot be waited for.
  bool wait(Use use);
  // The stream is about to be destroyed.
  void end(StreamRef stream) noexcept;

  StreamRef stream(uint32_t lane) const { return lanes_[lane].stream; }

 private:
  struct Lane {
    uint64_t id = 0;
    StreamRef stream;
    bool lasts = false;
    bool gone = false;    // the stream, after its end
    bool ended = false;   // gone, and its epochs are marked
    bool unused = false;  // ended, and its work is done
    uint64_t open = 1;    // the epoch that work falls into
    uint64_t passed = 0;  // all up to this one are done
    std::deque<std::pair<uint64_t, std::unique_ptr<Mark>>> marks;  // by the epoch they closed
    std::vector<uint64_t> ordered;  // by lane: the epoch this one's later work comes after
  };
  bool can_close(const Lane& lane) const;
  void close(Lane& lane);
  void poll(Lane& lane);
  Mark* mark_of(Use use);
  std::unique_ptr<Mark> spare_mark();

  MemoryDevice& device_;
  std::deque<Lane> lanes_;
  std::unordered_map<uint64_t, uint32_t> lane_of_id_;
  std::vector<std::unique_ptr<Mark>> spare_;
  std::vector<uint32_t> unused_;  // lanes of streams that ended, whose work is done
  uint64_t last_id_ = 0;
  uint32_t last_lane_ = 0;
  bool any_ = false;
};

}  // namespace tensorcraft::memory
