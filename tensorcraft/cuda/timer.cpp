// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/timer.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft {

EventTimer::EventTimer(StreamRef stream)
    : stream_(stream), begin_(stream.device(), true), end_(stream.device(), true) {}

void EventTimer::start() {
  begin_.record(stream_);
  started_ = true;
}

float EventTimer::stop() {
  if (!started_) fail(ErrorKind::value, "EventTimer::stop: the timer was not started");
  started_ = false;
  end_.record(stream_);
  return Event::elapsed_ms(begin_, end_);
}

}  // namespace tensorcraft
