// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/transfer/copy_device.hpp"
#include "tensorcraft/runtime/transfer/request.hpp"
#include "tensorcraft/runtime/transfer/stager.hpp"

#include <array>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorcraft::transfer {

// One transfer, as long as anybody asks about it.
struct Record {
  // Holds a request and its state; times are 0 until they come.
  Request request;
  State state = State::queued;
  Time submitted{0}, started{0}, ended{0};
  std::exception_ptr error;              // why it failed
  bool cancel_requested = false;         // running, and cancelled once nothing of it is in flight
  size_t enqueued_bytes = 0;             // of them, copies are on the lane up to the mark `copied`
  std::shared_ptr<memory::Mark> copied;  // null if they are done
  // Do all its copies come before `copied`?
  bool is_enqueued() const { return enqueued_bytes == request.bytes || is_terminal(state); }
  // How it goes: after those of its priority with a lower order, through slots or not, in pieces.
  uint64_t order = 0;
  bool is_staged = false;
  size_t piece_bytes = 0;
  size_t issued = 0, moved = 0;  // bytes whose pieces have begun, and have ended
  size_t on_the_way = 0;         // pieces between the two
  // Holds the streams of Request::after; empty once the lane waits for them.
  std::vector<std::pair<StreamRef, std::shared_ptr<memory::Mark>>> ready;
};

// The engine without thread, clock and lock: requests in, copies on the lanes of its device out.
// Not safe for concurrent use; times never go back. A lane is a stream, so a source that is not
// ready holds up what was started behind it.
class Core {
 public:
  // A transfer of this core's.
  using Handle = std::shared_ptr<Record>;
  // A transfer that has ended, and what it kept alive.
  struct Ended {
    Handle record;  // in a terminal state
    // The request's own, to be dropped without a lock.
    std::shared_ptr<const void> keep;
    // These are the request's own too, to be dropped without a lock.
    std::function<void(void*, size_t, size_t)> produce;
    std::function<void(const void*, size_t, size_t)> consume;
  };
  // Kind value for limits under which nothing could move.
  Core(std::unique_ptr<CopyDevice> device, std::unique_ptr<Stager> stager, Options options);
  // Waits for what is on the lanes.
  ~Core();

  // Throws what the device refuses, kind value for a request that cannot be; nothing is kept then.
  Handle submit(Request request, Time now);
  // False if it has ended. A queued one ends at once; of a running one nothing more begins.
  bool cancel(const Handle& record, Time now);
  void cancel_queued(Time now);
  // Moves all that can move. What ended since the last call, cancelled ones too, in that order.
  std::vector<Ended> pump(Time now);

  // A driver asks these before the next pump(): whether nothing is queued or runs, the time at
  // which a lane may go on, or copies that only asking tells of.
  bool is_idle() const;
  bool has_copies() const;
  // Waits for what is on the lanes.
  void drain();
  // Counts the ends, and the transfers of which the last copy came on its lane.
  uint64_t milestones() const { return milestones_; }
  std::optional<Time> wake() const { return wake_; }

  // Returns what the lanes did up to now.
  Statistics statistics(Time now) const;

 private:
  using Mark = std::shared_ptr<memory::Mark>;
  struct Slot {
    Block block;
    bool in_use = false;
  };
  // A piece of a transfer.
  struct Piece {
    Handle of;
    size_t at = 0, bytes = 0;
    Slot* slot = nullptr;  // it goes through
    Mark mark = nullptr;
    void* to() const { return static_cast<std::byte*>(of->request.to) + at; }
    const void* from() const { return static_cast<const std::byte*>(of->request.from) + at; }
  };
  struct Lane {
    Direction direction{};
    StreamRef stream;
    // By priority and order; the first goes first.
    std::map<std::pair<int64_t, uint64_t>, Handle> queued, running;
    std::deque<Piece> copying;  // on the stream, in that order
    size_t copying_bytes = 0;
    std::deque<Slot> slots;
    Time paid_until{0};  // when the limit has moved all that was begun
    Time busy_since{0};
    LaneStatistics counts;
  };
  static std::pair<int64_t, uint64_t> rank(const Record& record) {
    return {-int64_t(record.request.priority), record.order};
  }

  Lane& lane_of(const Record& record) { return lanes_[size_t(record.request.direction)]; }
  void take_staged(Time now);
  void take_copied(Lane& lane, Time now);
  bool is_copied(Lane& lane, Piece& piece);
  void start(Lane& lane, Time now);
  void issue(Lane& lane, Time now);
  Handle next(Lane& lane, Slot*& slot);
  Slot* free_slot(Lane& lane);
  void begin(Lane& lane, const Handle& record, Slot* slot, Time now);
  void stage(Piece piece, Time now);
  void hand_over(Piece piece, Time now, std::function<void()> work);
  void enqueue(Lane& lane, Piece piece, Time now);
  void wait_for_source(Lane& lane, Record& record);
  void copied(Piece piece, Time now);
  void finish(Piece piece, Time now);
  void fail_piece(Piece piece, Time now);
  void settle(const Handle& record, Time now);
  void end(const Handle& record, State state, Time now);
  Mark take_mark(StreamRef of);
  void give_mark(Mark mark);

  const std::unique_ptr<CopyDevice> device_;
  const Options options_;
  std::array<Lane, kDirections> lanes_;
  std::vector<Mark> idle_marks_;                 // of the engine's device
  std::unordered_map<uint64_t, Piece> staging_;  // by tag
  std::vector<Ended> ended_;
  std::optional<Time> wake_;
  uint64_t next_order_ = 0, next_tag_ = 0, milestones_ = 0;
  std::unique_ptr<Stager> stager_;  // its threads touch slots
};

}  // namespace tensorcraft::transfer
