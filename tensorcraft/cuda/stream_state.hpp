// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"

#include <cstdint>

// Tells an allocator what it has to know of streams.
namespace tensorcraft::cuda {
struct Driver;

// Returns a number that no other stream has as long as the process lives, whatever becomes of its
// handle. In each thread the per-thread default stream is another one. Only one that no Stream owns
// has another number while it `is_recorded`, that of its handle: the driver refuses to say who it
// is.
uint64_t stream_number(StreamRef stream, bool is_recorded);
// Returns a number, as unique, of the recording that the stream's work goes to; 0 if it runs.
uint64_t recording_number(StreamRef stream);

// Is it a default stream, or one that a Stream owns? Those tell when they end.
bool tells_its_end(StreamRef stream);
// `notice` is called for each stream of a Stream before it is destroyed. One of each listener's.
enum class Listener : uint8_t { memory, dispatch };
void on_stream_end(void (*notice)(StreamRef) noexcept, Listener listener = Listener::memory);

// `notice` is called with the device before a Graph begins to record there. One for the process.
void on_recording(void (*notice)(int device) noexcept);

// Whether a launch on the stream is recorded, as quickly as a watched launch needs to know: of a
// stream that a Stream owns, and of the default stream, the driver is asked only while a Graph of
// this process records. So work that another library records there counts as running.
bool launch_is_recorded(const Driver& driver, StreamRef stream);

// Graph calls these.
void recording_begins(int device) noexcept;
void recording_ends() noexcept;
// Stream calls these.
void stream_begins(StreamRef stream);
void stream_ends(StreamRef stream) noexcept;

}  // namespace tensorcraft::cuda
