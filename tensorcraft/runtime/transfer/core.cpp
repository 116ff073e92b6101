// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/transfer/core.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tensorcraft::transfer {
namespace {

// Returns the exception that the call threw, if it did.
template <class Call>
std::exception_ptr error_of(Call&& call) {
  try {
    call();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void check(const Options& options) {
  for (size_t i = 0; i < kDirections; ++i) {
    const LaneLimits& limits = options.lanes[i];
    if (limits.max_in_flight < 1)
      fail(ErrorKind::value, "TransferEngine: max_in_flight of ", to_string(Direction(i)),
           " must be at least 1, got ", limits.max_in_flight);
    if (!(limits.bytes_per_second >= 0 && std::isfinite(limits.bytes_per_second)))
      fail(ErrorKind::value, "TransferEngine: the bandwidth of ", to_string(Direction(i)),
           " must be 0 (no limit) or more bytes a second, got ", limits.bytes_per_second);
  }
  if (options.slots < 1 || options.slot_bytes < 1 || options.direct_bytes < 1)
    fail(ErrorKind::value, "TransferEngine: slots and bytes of a piece must be at least 1, got ",
         options.slots, " slots, pieces of ", options.slot_bytes, " and ", options.direct_bytes);
}

const void* host_side(const Request& request) {
  return request.direction == Direction::h2d ? request.from : request.to;
}

bool uses_host(Direction direction) {
  return direction == Direction::h2d || direction == Direction::d2h;
}

}  // namespace

Core::Core(std::unique_ptr<CopyDevice> device, std::unique_ptr<Stager> stager, Options options)
    : device_(std::move(device)), options_(options), stager_(std::move(stager)) {
  check(options_);
  for (size_t i = 0; i < kDirections; ++i) {
    lanes_[i].direction = Direction(i);
    lanes_[i].stream = device_->lane(Direction(i));
  }
}

Core::~Core() {
  stager_ = nullptr;
  drain();
  for (Lane& lane : lanes_)
    for (Slot& slot : lane.slots) device_->staging().deallocate(slot.block, lane.stream);
}

void Core::drain() {
  for (Lane& lane : lanes_)
    if (!lane.copying.empty())  // a device that cannot be waited for runs nothing more
      static_cast<void>(error_of([&] { device_->synchronize(lane.stream); }));
}

Core::Handle Core::submit(Request request, Time now) {
  if (request.produce && request.direction != Direction::h2d)
    fail(ErrorKind::value, "TransferEngine: only h2d can produce its bytes, not ",
         to_string(request.direction));
  if (request.consume && request.direction != Direction::d2h)
    fail(ErrorKind::value, "TransferEngine: only d2h can consume its bytes, not ",
         to_string(request.direction));
  if (request.bytes > 0 && !((request.to || request.consume) && (request.from || request.produce)))
    fail(ErrorKind::value, "TransferEngine: ", request.bytes, " bytes from ", request.from, " to ",
         request.to, ": an address is missing");
  auto record = std::make_shared<Record>();
  record->submitted = now;
  if (request.bytes > 0 && uses_host(request.direction))
    record->is_staged =
        request.produce || request.consume || device_->is_pageable(host_side(request));
  const size_t direct = request.ahead ? request.bytes : options_.direct_bytes;
  record->piece_bytes =
      record->is_staged ? staged_piece_bytes(request.bytes, options_.slot_bytes) : direct;
  for (const StreamRef stream : request.after) {
    record->ready.emplace_back(stream, take_mark(stream));
    record->ready.back().second->record(stream);
  }
  record->request = std::move(request);
  record->order = next_order_++;
  lane_of(*record).queued.emplace(rank(*record), record);
  return record;
}

bool Core::cancel(const Handle& record, Time now) {
  if (is_terminal(record->state)) return false;
  record->cancel_requested = true;
  if (record->state == State::queued)
    end(record, State::cancelled, now);
  else
    settle(record, now);
  return true;
}

void Core::cancel_queued(Time now) {
  for (Lane& lane : lanes_)
    while (!lane.queued.empty()) cancel(Handle(lane.queued.begin()->second), now);
}

std::vector<Core::Ended> Core::pump(Time now) {
  wake_.reset();
  take_staged(now);
  for (Lane& lane : lanes_) take_copied(lane, now);
  for (Lane& lane : lanes_) {
    size_t ended = 0;
    do {  // what ends at once makes room for the next
      ended = ended_.size();
      start(lane, now);
      issue(lane, now);
    } while (ended_.size() != ended);
  }
  return std::exchange(ended_, {});
}

bool Core::is_idle() const {
  return std::ranges::all_of(
      lanes_, [](const Lane& lane) { return lane.queued.empty() && lane.running.empty(); });
}

bool Core::has_copies() const {
  return std::ranges::any_of(lanes_, [](const Lane& lane) { return !lane.copying.empty(); });
}

Statistics Core::statistics(Time now) const {
  Statistics all;
  for (size_t i = 0; i < kDirections; ++i) {
    const Lane& lane = lanes_[i];
    all[i] = lane.counts;
    all[i].queued = lane.queued.size();
    all[i].running = lane.running.size();
    if (!lane.running.empty()) all[i].busy += now - lane.busy_since;
  }
  return all;
}

// Memory of the host that the stager copied: filled slots go on to the lane, emptied ones are done.
void Core::take_staged(Time now) {
  for (const Stager::Done& done : stager_->take_done()) {
    Piece piece = std::move(staging_.extract(done.tag).mapped());
    Lane& lane = lane_of(*piece.of);
    if (done.error && !piece.of->error) piece.of->error = done.error;
    if (done.error)
      fail_piece(std::move(piece), now);
    else if (lane.direction == Direction::d2h)
      finish(std::move(piece), now);
    else
      enqueue(lane, std::move(piece), now);
  }
}

void Core::take_copied(Lane& lane, Time now) {
  while (!lane.copying.empty() && is_copied(lane, lane.copying.front())) {
    Piece piece = std::move(lane.copying.front());
    lane.copying.pop_front();
    lane.copying_bytes -= piece.bytes;
    copied(std::move(piece), now);
  }
}

// A question that fails is a wait; a wait that fails is the end of the piece, without success.
bool Core::is_copied(Lane& lane, Piece& piece) {
  bool done = false;
  auto error = error_of([&] { done = piece.mark->done(); });
  if (!error) return done;
  if (device_->usable() && !error_of([&] { device_->synchronize(lane.stream); })) return true;
  if (!piece.of->error) piece.of->error = error;
  return true;
}

void Core::start(Lane& lane, Time now) {
  const auto most = size_t(options_.lanes[size_t(lane.direction)].max_in_flight);
  while (!lane.queued.empty() && lane.running.size() < most) {
    if (lane.running.empty()) lane.busy_since = now;
    auto first = lane.queued.extract(lane.queued.begin());
    const Handle record = first.mapped();
    lane.running.insert(std::move(first));
    record->state = State::running;
    record->started = now;
    settle(record, now);  // one without bytes is done
  }
}

void Core::issue(Lane& lane, Time now) {
  const double limit = options_.lanes[size_t(lane.direction)].bytes_per_second;
  Slot* slot = nullptr;
  while (const Handle record = next(lane, slot)) {
    if (limit > 0 && lane.paid_until > now) {
      wake_ = std::min(wake_.value_or(lane.paid_until), lane.paid_until);
      return;
    }
    const size_t begun = record->issued;
    begin(lane, record, slot, now);
    if (limit > 0)
      lane.paid_until = std::max(lane.paid_until, now) +
                        Time(int64_t(1e9 * double(record->issued - begun) / limit));
  }
}

// The first running transfer that can begin a piece now.
Core::Handle Core::next(Lane& lane, Slot*& slot) {
  for (const auto& [rank, record] : lane.running) {
    if (record->issued == record->request.bytes || record->error || record->cancel_requested)
      continue;
    slot = nullptr;
    if (record->is_staged) {
      slot = free_slot(lane);
      if (slot) return record;
    } else if (record->request.ahead || lane.copying_bytes < options_.window_bytes) {
      return record;
    }
  }
  return nullptr;
}

// Slots are taken as they are needed, and kept.
Core::Slot* Core::free_slot(Lane& lane) {
  for (Slot& slot : lane.slots)
    if (!slot.in_use) return &slot;
  if (lane.slots.size() >= size_t(options_.slots)) return nullptr;
  return &lane.slots.emplace_back();
}

void Core::begin(Lane& lane, const Handle& record, Slot* slot, Time now) {
  const size_t left = record->request.bytes - record->issued;
  Piece piece{.of = record,
              .at = record->issued,
              .bytes = std::min(left, record->piece_bytes),
              .slot = slot};
  record->issued += piece.bytes;
  ++record->on_the_way;
  if (!slot) return enqueue(lane, std::move(piece), now);
  slot->in_use = true;
  record->error = error_of([&] {
    if (!slot->block.data)
      slot->block = device_->staging().allocate(options_.slot_bytes, lane.stream);
  });
  if (record->error) return fail_piece(std::move(piece), now);
  if (lane.direction == Direction::h2d)
    stage(std::move(piece), now);
  else
    enqueue(lane, std::move(piece), now);
}

// Between the slot and the host's own memory.
void Core::stage(Piece piece, Time now) {
  Lane& lane = lane_of(*piece.of);
  const bool fills = lane.direction == Direction::h2d;
  void* const to = fills ? piece.slot->block.data : piece.to();
  const void* const from = fills ? piece.from() : piece.slot->block.data;
  const size_t at = piece.at, bytes = piece.bytes;
  if (const Handle of = piece.of; of->request.produce || of->request.consume)
    return hand_over(std::move(piece), now, [=] {
      fills ? of->request.produce(to, at, bytes) : of->request.consume(from, at, bytes);
    });
  if (bytes <= options_.inline_bytes) {
    std::memcpy(to, from, bytes);
    return fills ? enqueue(lane, std::move(piece), now) : finish(std::move(piece), now);
  }
  hand_over(std::move(piece), now, [=] { std::memcpy(to, from, bytes); });
}

// A work that the stager does not begin is the end of its piece.
void Core::hand_over(Piece piece, Time now, std::function<void()> work) {
  const uint64_t tag = next_tag_++;
  const auto at = staging_.emplace(tag, std::move(piece)).first;
  auto error = error_of([&] { stager_->start(tag, std::move(work)); });
  if (!error) return;
  Piece refused = std::move(staging_.extract(at).mapped());
  if (!refused.of->error) refused.of->error = std::move(error);
  fail_piece(std::move(refused), now);
}

// The copy on the lane, and the mark behind it.
void Core::enqueue(Lane& lane, Piece piece, Time now) {
  Record& record = *piece.of;
  if (record.error || record.cancel_requested) return fail_piece(std::move(piece), now);
  const Request& request = record.request;
  const bool is_up = lane.direction == Direction::h2d;
  void* const to = piece.slot && !is_up ? piece.slot->block.data : piece.to();
  const void* const from = piece.slot && is_up ? piece.slot->block.data : piece.from();
  record.error = error_of([&] {
    piece.mark = take_mark(lane.stream);
    wait_for_source(lane, record);
    device_->copy(request, to, from, piece.bytes);
  });
  if (record.error) return fail_piece(std::move(piece), now);
  auto unmarked = error_of([&] { piece.mark->record(lane.stream); });
  if (unmarked && !error_of([&] { device_->synchronize(lane.stream); })) {
    piece.mark = nullptr;  // the copy is done
    unmarked = nullptr;
  }
  if (unmarked) {
    record.error = unmarked;
    return fail_piece(std::move(piece), now);
  }
  record.copied = piece.mark;
  record.enqueued_bytes += piece.bytes;
  milestones_ += record.is_enqueued();
  if (!piece.mark) return copied(std::move(piece), now);
  lane.copying_bytes += piece.bytes;
  lane.copying.push_back(std::move(piece));
}

void Core::wait_for_source(Lane& lane, Record& record) {
  while (!record.ready.empty()) {
    auto& [stream, mark] = record.ready.back();
    mark->order_before(lane.stream);
    if (stream.device() == lane.stream.device()) give_mark(std::move(mark));
    record.ready.pop_back();
  }
}

// The lane is done with a piece.
void Core::copied(Piece piece, Time now) {
  const bool drains = piece.slot && lane_of(*piece.of).direction == Direction::d2h;
  if (drains && !piece.of->error && !piece.of->cancel_requested)
    return stage(std::move(piece), now);
  finish(std::move(piece), now);
}

void Core::finish(Piece piece, Time now) {
  Record& record = *piece.of;
  if (piece.slot) piece.slot->in_use = false;
  if (piece.mark && piece.mark != record.copied) give_mark(std::move(piece.mark));
  --record.on_the_way;
  record.moved += piece.bytes;
  if (!record.error && !record.cancel_requested) lane_of(record).counts.bytes += piece.bytes;
  settle(piece.of, now);
}

// Nothing of it is on the lane.
void Core::fail_piece(Piece piece, Time now) {
  if (piece.slot) piece.slot->in_use = false;
  --piece.of->on_the_way;
  settle(piece.of, now);
}

// Ends a running transfer of which nothing is on its way any more.
void Core::settle(const Handle& record, Time now) {
  const bool is_over =
      record->moved == record->request.bytes || record->error || record->cancel_requested;
  if (record->state != State::running || record->on_the_way > 0 || !is_over) return;
  end(record,
      record->cancel_requested ? State::cancelled
      : record->error          ? State::failed
                               : State::completed,
      now);
}

void Core::end(const Handle& record, State state, Time now) {
  Lane& lane = lane_of(*record);
  if (record->state == State::running) {
    lane.running.erase(rank(*record));
    if (lane.running.empty()) lane.counts.busy += now - lane.busy_since;
  } else {
    lane.queued.erase(rank(*record));
  }
  ++milestones_;
  record->state = state;
  record->ended = now;
  give_mark(std::move(record->copied));
  record->ready.clear();
  ++(state == State::completed ? lane.counts.completed
     : state == State::failed  ? lane.counts.failed
                               : lane.counts.cancelled);
  ended_.push_back({record, std::exchange(record->request.keep, nullptr),
                    std::exchange(record->request.produce, nullptr),
                    std::exchange(record->request.consume, nullptr)});
}

Core::Mark Core::take_mark(StreamRef of) {
  if (idle_marks_.empty() || of.device() != lanes_[0].stream.device())
    return device_->make_mark(of);
  Mark mark = std::move(idle_marks_.back());
  idle_marks_.pop_back();
  return mark;
}

// For the next one, unless somebody outside still orders a stream behind it.
void Core::give_mark(Mark mark) {
  constexpr size_t kMost = 64;
  if (mark && mark.use_count() == 1 && idle_marks_.size() < kMost)
    idle_marks_.push_back(std::move(mark));
}

}  // namespace tensorcraft::transfer
