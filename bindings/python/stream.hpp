// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <nanobind/nanobind.h>

namespace tensorcraft::python {

// tc.Stream. The stream itself lives on when the object is gone, for the next tc.Stream: a tensor
// may still be freed in its order.
struct PyStream {
  Stream stream;
  explicit PyStream(int device);
  ~PyStream();
};

// Registers Stream and Event.
void register_stream(nanobind::module_& m);

}  // namespace tensorcraft::python
