// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/driver.hpp"

namespace tensorcraft::cuda {

// While it lives the calling thread may make driver calls that a recording forbids.
class RelaxedRecording {
 public:
  explicit RelaxedRecording(const Driver& driver) : driver_(driver) { exchange(); }
  ~RelaxedRecording() { exchange(); }
  RelaxedRecording(const RelaxedRecording&) = delete;
  RelaxedRecording& operator=(const RelaxedRecording&) = delete;

 private:
  static constexpr int kRelaxed = 2;
  void exchange() { driver_.thread_exchange_stream_capture_mode.quiet(&mode_); }
  const Driver& driver_;
  int mode_ = kRelaxed;
};

}  // namespace tensorcraft::cuda
