// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/cuda/stream_value.hpp"

#include <utility>
#include <vector>

namespace tensorcraft::cuda {

// A line of memory that the host and every device reach.
struct alignas(64) FlagLine {
  uint32_t value = 0, abort = 0, timed_out = 0;
};

// The count of an Event. Where there is a GPU it lies in page-locked memory, which is not given
// back: a line is used again once the streams that it was used on have passed.
class ValueFlag {
 public:
  explicit ValueFlag(Device device);
  ~ValueFlag();
  ValueFlag(const ValueFlag&) = delete;
  ValueFlag& operator=(const ValueFlag&) = delete;

  FlagLine& line() { return *line_; }
  // As kernels of a device see it.
  WaitFlag seen_by(int device) const;
  // A stream was given work on it.
  void used_on(StreamRef stream);

  // The last use by a stream.
  struct Use {
    StreamRef stream;
    CUevent_st* passed;
  };

 private:
  FlagLine* line_;
  const bool is_pinned_;
  const uint64_t driver_;
  bool is_recorded_ = false;  // a graph may use it whenever it is launched
  std::vector<Use> uses_;
};

}  // namespace tensorcraft::cuda
