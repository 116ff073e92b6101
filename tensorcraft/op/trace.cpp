// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/trace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

namespace tensorcraft::op {
struct Trace::Recording {
  struct Call {
    std::string_view op, variant;
    Device device;
    std::chrono::steady_clock::time_point start, end;
    std::optional<Event> start_event, end_event;
  };
  std::vector<Call> calls;
  std::shared_ptr<Recording> outer;
  std::atomic<bool> stopped = false;
};

namespace {
thread_local std::shared_ptr<Trace::Recording> current;
}

Trace::Trace() : recording_(std::make_shared<Recording>()) {
  recording_->outer = current;
  current = recording_;
}

void Trace::stop() {
  recording_->stopped = true;
  active();  // lets go of it if it is this thread's
}

const std::shared_ptr<Trace::Recording>& Trace::active() {
  while (current && current->stopped) current = std::shared_ptr(current->outer);
  return current;
}

std::vector<Trace::Row> Trace::rows() const {
  std::vector<Row> rows;
  for (const Recording::Call& call : recording_->calls) {
    const auto same = [&](const Row& r) {
      return r.op == call.op && r.variant == call.variant && r.device == call.device;
    };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) row = rows.insert(row, {call.op, call.variant, call.device});
    ++row->calls;
    row->milliseconds +=
        call.start_event && call.end_event
            ? double(Event::elapsed_ms(*call.start_event, *call.end_event))
            : std::chrono::duration<double, std::milli>(call.end - call.start).count();
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.milliseconds > b.milliseconds; });
  return rows;
}

Trace::Scope::Scope(std::shared_ptr<Recording> recording, std::string_view op,
                    std::string_view variant, Device device, StreamRef stream)
    : recording_(std::move(recording)), stream_(stream) {
  // A call that a graph records takes no time now.
  if (recording_ && device.is_cuda() && stream.is_capturing()) recording_ = nullptr;
  if (!recording_) return;
  index_ = recording_->calls.size();
  Recording::Call& call = recording_->calls.emplace_back();
  call.op = op;
  call.variant = variant;
  call.device = device;
  if (device.is_cuda()) {
    call.start_event.emplace(device.index, true);
    call.start_event->record(stream);
  }
  call.start = std::chrono::steady_clock::now();
}

Trace::Scope::~Scope() {
  if (!recording_) return;
  Recording::Call& call = recording_->calls[index_];
  call.end = std::chrono::steady_clock::now();
  if (!call.start_event) return;
  try {
    Event end(call.device.index, true);
    end.record(stream_);
    call.end_event.emplace(std::move(end));
  } catch (...) {
    call.start_event.reset();  // the launch failed; its own error is on its way
  }
}

}  // namespace tensorcraft::op
