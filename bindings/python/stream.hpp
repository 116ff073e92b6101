// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// tc.Stream. The stream itself lives on when the object is gone, for the next tc.Stream: a tensor
// may still be freed in its order.
struct PyStream {
  const int priority;
  Stream stream;
  explicit PyStream(int device, int priority = 0);
  ~PyStream();
};

// Makes a stream current for this thread while it lives.
class CurrentStream {
 public:
  explicit CurrentStream(StreamRef stream) : before_(current_stream(stream.device())) {
    set_current_stream(stream);
  }
  ~CurrentStream() { set_current_stream(before_); }
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

 private:
  StreamRef before_;
};

// Registers Stream.
void register_stream(nanobind::module_& m);

}  // namespace tensorcraft::python
