// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

namespace tensorcraft {

// Times what a stream does, by two events of its device. Moves only.
class EventTimer {
 public:
  // The stream must outlive it. Kinds as for Event.
  explicit EventTimer(StreamRef stream);
  // Time runs from the moment the device has done what the stream holds so far.
  void start();
  // Milliseconds from there until the device has done what the stream holds now; waits for that,
  // and throws what the work failed with. Kind value before start().
  float stop();

 private:
  StreamRef stream_;
  Event begin_, end_;
  bool started_ = false;
};

}  // namespace tensorcraft
