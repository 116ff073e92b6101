// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/dispatch/controller.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>

namespace tensorcraft::dispatch {

// Launches between two marks: few enough that a stream at its limit has one to wait for, and so
// many that a mark, which costs as much as some launches, is little to each.
uint64_t Controller::spacing(const Lane& lane) {
  constexpr uint64_t kMost = 128;
  return lane.limit == 0 ? kMost : std::clamp<uint64_t>(uint64_t(lane.limit) / 4, 1, kMost);
}

Controller::Lane& Controller::lane_of(StreamRef stream) {
  Lane& lane = lanes_[{stream.device(), stream.handle()}];
  lane.stream = stream;
  return lane;
}

bool Controller::admit(StreamRef stream) {
  if (!limits_.load(std::memory_order_acquire)) return false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    Lane& lane = lane_of(stream);
    const auto is_full = [&] {
      return lane.limit > 0 && lane.in_flight() + lane.admitted >= uint64_t(lane.limit);
    };
    if (is_full()) retire(lane);
    if (is_full() && lane.marks.empty() && lane.in_flight() > 0) mark(lane);
    if (!is_full()) {
      ++lane.admitted;
      return true;
    }
    if (lane.marks.empty()) {  // other threads are about to launch all that may be
      changed_.wait(lock);
      continue;
    }
    const std::shared_ptr<memory::Mark> first = lane.marks.front().first;
    lock.unlock();
    try {
      first->wait();
    } catch (const std::exception&) {  // the launch learns of it
      lock.lock();
      lose(lane_of(stream));
      continue;
    }
    lock.lock();
  }
}

void Controller::launched(StreamRef stream, bool admitted) noexcept {
  const std::lock_guard lock(mutex_);
  Lane& lane = lane_of(stream);
  if (admitted && lane.admitted > 0) --lane.admitted;  // none is left of a stream that ended
  ++lane.launched;
  ++counts_.launched;
  if (lane.launched - lane.marked >= spacing(lane)) {
    mark(lane);
    retire(lane);
  }
  if (lane.limit > 0) changed_.notify_all();
}

void Controller::failed(StreamRef stream, bool admitted) noexcept {
  withdraw(stream, admitted);
  const std::lock_guard lock(mutex_);
  ++counts_.failed;
}

void Controller::withdraw(StreamRef stream, bool admitted) noexcept {
  const std::lock_guard lock(mutex_);
  Lane& lane = lane_of(stream);
  if (admitted && lane.admitted > 0) --lane.admitted;
  changed_.notify_all();
}

void Controller::note_cancelled() noexcept {
  const std::lock_guard lock(mutex_);
  ++counts_.cancelled;
}

void Controller::note_completed() noexcept {
  const std::lock_guard lock(mutex_);
  ++counts_.launched;
  ++counts_.completed;
}

// A mark that cannot be made is left out: the next one covers its launches too.
void Controller::mark(Lane& lane) noexcept {
  try {
    auto& idle = idle_[lane.stream.device()];
    std::shared_ptr<memory::Mark> made;
    // Another thread waits for a mark that has a second owner.
    if (!idle.empty() && idle.back().use_count() == 1) {
      made = std::move(idle.back());
      idle.pop_back();
    } else {
      made = make_mark_(lane.stream);
    }
    made->record(lane.stream);
    lane.marks.emplace_back(std::move(made), lane.launched);
    lane.marked = lane.launched;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::device_lost) lose(lane);
  } catch (const std::exception&) {  // no memory
  }
}

// Drops the marks that the stream has passed.
void Controller::retire(Lane& lane) noexcept {
  constexpr size_t kMostIdle = 64;
  try {
    while (!lane.marks.empty() && lane.marks.front().first->done()) {
      auto& [mark, upto] = lane.marks.front();
      counts_.completed += upto - lane.ended;
      lane.ended = upto;
      auto& idle = idle_[lane.stream.device()];
      if (idle.size() < kMostIdle) idle.push_back(std::move(mark));
      lane.marks.pop_front();
      changed_.notify_all();
    }
  } catch (const std::exception&) {
    lose(lane);
  }
}

// Nothing can be learnt of the stream any more.
void Controller::lose(Lane& lane) noexcept {
  counts_.failed += lane.in_flight();
  lane.ended = lane.marked = lane.launched;
  lane.marks.clear();
  changed_.notify_all();
}

void Controller::set_limit(StreamRef stream, int limit) {
  if (limit < 0)
    fail(ErrorKind::value, "dispatch: a limit of ", limit,
         " launches cannot be; give 1 or more, or 0 for none");
  const std::lock_guard lock(mutex_);
  lane_of(stream).limit = limit;
  if (limit > 0) limits_.store(true, std::memory_order_release);
  changed_.notify_all();
}

int Controller::limit(StreamRef stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = lanes_.find({stream.device(), stream.handle()});
  return found == lanes_.end() ? 0 : found->second.limit;
}

bool Controller::has_limits() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(lanes_, [](const auto& one) { return one.second.limit > 0; });
}

void Controller::stream_ends(StreamRef stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = lanes_.find({stream.device(), stream.handle()});
  if (found == lanes_.end()) return;
  counts_.completed += found->second.in_flight();
  lanes_.erase(found);
  changed_.notify_all();
}

Counts Controller::counts(const std::function<bool(StreamRef)>& ask) {
  const std::lock_guard lock(mutex_);
  Counts now = counts_;
  for (auto& [key, lane] : lanes_) {
    if (ask && lane.marked < lane.launched && ask(lane.stream)) mark(lane);
    retire(lane);
    now.in_flight += lane.in_flight();
  }
  now.completed = counts_.completed;
  now.failed = counts_.failed;
  return now;
}

}  // namespace tensorcraft::dispatch
