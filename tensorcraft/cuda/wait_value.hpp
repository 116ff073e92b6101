// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <cstdint>
#include <optional>

namespace tensorcraft {

// A wait for v ends when its flag f meets this: at_least is f - v >= 0 as a signed difference of 32
// bits, so a count may run over; and_bits is f & v != 0; nor_bits is ~(f | v) != 0.
enum class WaitCondition : int { at_least, equal, and_bits, nor_bits };

// Arguments of stream_wait_value() besides flag and value.
struct WaitValueOptions {
  // Whether the flag suffices, and who waits.
  WaitCondition condition = WaitCondition::at_least;
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the flag's device
};

// Work enqueued later on the stream starts once element 0 of the flag meets the condition, whoever
// writes it and whenever: the wait may be enqueued before the write, unlike one for an event. flag:
// int32, not empty, on a CUDA device, or on the host: page-locked if a stream is given, else the
// calling thread itself waits. The flag must be defined, and live until the stream has passed.
// Nothing ends a wait for a value that never comes. Kind cancelled if a wait of the host is
// interrupted.
void stream_wait_value(const TensorView& flag, int32_t value, const WaitValueOptions& options = {});
// Writes the value there once the stream has done its work so far, visible to the whole system; at
// once if the flag is on the host and no stream is given.
void stream_write_value(const TensorView& flag, int32_t value,
                        std::optional<StreamRef> stream = {});

}  // namespace tensorcraft
