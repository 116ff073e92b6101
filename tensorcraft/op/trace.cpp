// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/trace.hpp"

#include <algorithm>

namespace tensorcraft::op {
namespace {
thread_local Trace* current = nullptr;
}

Trace::Trace() : outer_(current) { current = this; }
Trace::~Trace() { stop(); }

void Trace::stop() {
  if (!recording_) return;
  recording_ = false;
  if (current == this) current = outer_;
}

Trace* Trace::active() { return current; }

std::vector<Trace::Row> Trace::rows() const {
  std::vector<Row> rows;
  for (const Call& call : calls_) {
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

Trace::Scope::Scope(Trace* trace, std::string_view op, std::string_view variant, Device device,
                    StreamRef stream)
    : trace_(trace), stream_(stream) {
  if (!trace_) return;
  index_ = trace_->calls_.size();
  Call& call = trace_->calls_.emplace_back();
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
  if (!trace_) return;
  Call& call = trace_->calls_[index_];
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
