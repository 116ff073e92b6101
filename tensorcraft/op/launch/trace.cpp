// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/trace.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/trace/nvtx.hpp"
#include "tensorcraft/runtime/trace/trace_log.hpp"

#include <unistd.h>

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
  TraceLog* log = nullptr;  // which takes each call at its end, instead of `calls`
  bool is_timed = true;     // else calls are only ranges for a profiler
};

namespace {

thread_local std::shared_ptr<Trace::Recording> current;

// A process that is traced, or that a profiler listens to, records every thread that no Trace
// records.
std::shared_ptr<Trace::Recording> recording_of_process() {
  TraceLog* const log = TraceLog::of_process();
  if (!log && !nvtx::is_listening()) return nullptr;
  auto recording = std::make_shared<Trace::Recording>();
  recording->log = log;
  recording->is_timed = log != nullptr;
  return recording;
}

void tell(TraceLog& log, Trace::Recording::Call call, StreamRef stream) {
  const TraceLog::Details details{{"variant", std::string(call.variant)}};
  if (call.start_event && call.end_event)
    log.gpu_span(call.op, stream, std::move(*call.start_event), std::move(*call.end_event),
                 details);
  log.span(join("thread ", gettid()), call.op, call.start.time_since_epoch(),
           call.end.time_since_epoch(),
           {{"variant", std::string(call.variant)}, {"device", to_string(call.device)}});
}

}  // namespace

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
  if (!current) current = recording_of_process();
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
  if (!recording_) return;
  if (nvtx::is_listening()) {
    nvtx::push(variant.empty() ? std::string(op) : join(op, " ", variant));
    has_range_ = true;
  }
  // A call that a graph records takes no time now.
  if (!recording_->is_timed || (device.is_cuda() && stream.is_capturing())) recording_ = nullptr;
  if (!recording_) return;
  index_ = recording_->calls.size();
  Recording::Call& call = recording_->calls.emplace_back();
  call.op = op;
  call.variant = variant;
  call.device = device;
  if (device.is_cuda()) {
    if (recording_->log) recording_->log->watch(device.index);
    call.start_event.emplace(device.index, true);
    call.start_event->record(stream);
  }
  call.start = std::chrono::steady_clock::now();
}

Trace::Scope::~Scope() {
  if (has_range_) nvtx::pop();
  if (!recording_) return;
  Recording::Call& call = recording_->calls[index_];
  call.end = std::chrono::steady_clock::now();
  if (call.start_event) try {
      Event end(call.device.index, true);
      end.record(stream_);
      call.end_event.emplace(std::move(end));
    } catch (...) {
      call.start_event.reset();  // the launch failed; its own error is on its way
    }
  if (!recording_->log) return;
  Recording::Call ended = std::move(call);
  recording_->calls.resize(index_);  // calls within this one have ended before
  try {
    tell(*recording_->log, std::move(ended), stream_);
  } catch (...) {  // no memory for an event of the log
  }
}

}  // namespace tensorcraft::op
