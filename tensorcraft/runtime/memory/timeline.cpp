// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/timeline.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft::memory {

void add_use(Uses& uses, Use use) {
  for (Use& known : uses)
    if (known.lane == use.lane) {
      known.epoch = std::max(known.epoch, use.epoch);
      return;
    }
  uses.push_back(use);
}

uint32_t Timeline::lane_of(StreamRef stream, uint64_t id) {
  if (any_ && id == last_id_) return last_lane_;
  auto known = lane_of_id_.find(id);
  if (known == lane_of_id_.end()) {
    const bool lasts = device_.lasts(stream);
    uint32_t index = 0;
    if (unused_.empty()) {
      index = uint32_t(lanes_.size());
      lanes_.emplace_back();
    } else {
      index = unused_.back();
      unused_.pop_back();
    }
    // Epochs go on, so uses of the lane's last stream stay done.
    Lane& lane = lanes_[index];
    lane.id = id;
    lane.stream = stream;
    lane.lasts = lasts;
    lane.gone = lane.ended = lane.unused = false;
    lane.ordered.clear();
    known = lane_of_id_.emplace(id, index).first;
  }
  any_ = true;
  last_id_ = id;
  return last_lane_ = known->second;
}

Use Timeline::now(uint32_t index) noexcept {
  Lane& lane = lanes_[index];
  if (lane.ended) return {index, lane.open - 1};
  const Use use{index, lane.open};
  try {
    if (!lane.lasts && !lane.gone && device_.can_mark(lane.stream)) close(lane);
  } catch (...) {  // the epoch stays open
  }
  return use;
}

bool Timeline::passed(const Uses& uses) const {
  return std::ranges::all_of(uses, [this](Use use) { return passed(use); });
}

std::unique_ptr<Mark> Timeline::spare_mark() {
  if (spare_.empty()) return device_.make_mark();
  std::unique_ptr<Mark> mark = std::move(spare_.back());
  spare_.pop_back();
  return mark;
}

// Only of a lane whose stream is known to live.
void Timeline::close(Lane& lane) {
  constexpr size_t kMany = 64;  // marks of a stream that is marked in each call
  std::unique_ptr<Mark> mark = spare_mark();
  mark->record(lane.stream);
  lane.marks.emplace_back(lane.open, std::move(mark));
  ++lane.open;
  if (lane.marks.size() > kMany) poll(lane);
}

bool Timeline::can_close(const Lane& lane) const {
  return lane.lasts && device_.can_mark(lane.stream);
}

void Timeline::poll(Lane& lane) {
  while (!lane.marks.empty() && lane.marks.front().second->done()) {
    lane.passed = lane.marks.front().first;
    spare_.push_back(std::move(lane.marks.front().second));
    lane.marks.pop_front();
  }
}

void Timeline::poll() {
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    poll(lane);
    if (!lane.ended || lane.unused || lane.passed + 1 < lane.open) continue;
    lane.unused = true;
    unused_.push_back(index);
  }
}

void Timeline::close_all() noexcept {
  for (Lane& lane : lanes_) try {
      if (can_close(lane)) close(lane);
    } catch (...) {  // the epoch stays open
    }
}

// The first mark at or after the use, recorded now if there is none; null if that cannot be, and if
// the work is found to be done.
Mark* Timeline::mark_of(Use use) {
  Lane& lane = lanes_[use.lane];
  if (use.epoch >= lane.open) {
    if (!can_close(lane)) return nullptr;
    close(lane);
  }
  const auto mark = std::ranges::lower_bound(lane.marks, use.epoch, {},
                                             [](const auto& entry) { return entry.first; });
  return mark == lane.marks.end() ? nullptr : mark->second.get();
}

bool Timeline::can_order(Use use, uint32_t to) const {
  if (use.lane == to || passed(use)) return true;
  const Lane& lane = lanes_[use.lane];
  return use.epoch < lane.open || can_close(lane);
}

void Timeline::order(Use use, uint32_t to) {
  if (use.lane == to || passed(use)) return;
  const std::vector<uint64_t>& known = lanes_[to].ordered;
  if (use.lane < known.size() && known[use.lane] >= use.epoch) return;
  Mark* const mark = mark_of(use);
  if (!mark && passed(use)) return;
  if (!mark)
    fail(ErrorKind::value,
         "memory is used by a stream that is recorded into a graph, or that ended unmarked; wait "
         "for that stream's work before another one uses the memory");
  mark->order_before(lanes_[to].stream);
  std::vector<uint64_t>& ordered = lanes_[to].ordered;
  if (ordered.size() <= use.lane) ordered.resize(use.lane + 1);
  ordered[use.lane] = use.epoch;
}

bool Timeline::wait(Use use) {
  if (passed(use)) return true;
  Mark* const mark = mark_of(use);
  if (!mark) return passed(use);
  mark->wait();
  poll(lanes_[use.lane]);
  return passed(use);
}

void Timeline::end(StreamRef stream) noexcept {
  // By the handle: the device may refuse to say more.
  const auto lane = std::ranges::find_if(
      lanes_, [stream](const Lane& known) { return known.lasts && known.stream == stream; });
  if (lane == lanes_.end()) return;
  lane->lasts = false;
  lane->gone = true;
  lane_of_id_.erase(lane->id);
  any_ = false;
  // There is no later try, so a refusal that may pass is tried once more. Work that cannot be
  // marked never counts as done, and the lane is lost.
  for (int attempt = 0; attempt < 2 && !lane->ended; ++attempt) {
    try {
      if (!device_.can_mark(stream)) return;
      close(*lane);
      lane->ended = true;
    } catch (...) {
    }
  }
}

}  // namespace tensorcraft::memory
