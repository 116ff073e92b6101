// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

namespace tensorcraft::cuda {

// A stream whose waiting blocks are scheduled before those of a lower priority; 0 is that of other
// streams. The device has a few steps, beyond which a priority counts as the last one. What runs is
// not interrupted. Errors are those of Stream.
Stream make_stream(int device, int priority);

}  // namespace tensorcraft::cuda
