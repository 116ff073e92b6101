// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream_state.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace tensorcraft::cuda {
namespace {

StreamRef ended;
void note_end(StreamRef stream) noexcept { ended = stream; }

TEST(StreamState, EveryStreamHasANumber) {
  const test::FakeDriver driver;
  const Stream a, b;
  const StreamRef per_thread(reinterpret_cast<CUstream_st*>(2));
  std::set<uint64_t> numbers{stream_number(a, false), stream_number(b, false),
                             stream_number(StreamRef(), false), stream_number(per_thread, false)};
  EXPECT_EQ(stream_number(a, false), stream_number(a, false));
  std::thread([&] { numbers.insert(stream_number(per_thread, false)); }).join();
  EXPECT_EQ(numbers.size(), 5u);
}

// The driver's answer costs more than all else that a watched launch adds.
TEST(StreamState, ALaunchOfAnOwnStreamAsksTheDriverOnlyWhileAGraphRecords) {
  test::FakeDriver driver;
  const Stream stream, other;
  const int& asked = driver.calls["cuStreamIsCapturing"];
  EXPECT_FALSE(launch_is_recorded(require_driver(), stream));
  EXPECT_FALSE(launch_is_recorded(require_driver(), StreamRef()));
  EXPECT_EQ(asked, 0);
  const Graph graph(stream, [&] {
    EXPECT_TRUE(launch_is_recorded(require_driver(), stream));
    EXPECT_FALSE(launch_is_recorded(require_driver(), other));
  });
  EXPECT_EQ(asked, 2);
  EXPECT_THROW(Graph(stream, [] { throw 1; }), int);
  EXPECT_FALSE(launch_is_recorded(require_driver(), stream));
  EXPECT_EQ(asked, 2);
}

TEST(StreamState, ALaunchOfAForeignStreamAsksTheDriver) {
  test::FakeDriver driver;
  std::optional<Stream> stream(std::in_place);
  const StreamRef foreign = *stream;
  stream_ends(foreign);  // from here on nobody here owns it
  const DeviceGuard guard(0);
  EXPECT_FALSE(launch_is_recorded(require_driver(), foreign));
  driver.capturing = true;
  EXPECT_TRUE(launch_is_recorded(require_driver(), foreign));
}

// The driver does not say who a stream is that is recorded.
TEST(StreamState, AStreamThatIsRecordedKeepsItsNumber) {
  const test::FakeDriver driver;
  const Stream stream;
  const uint64_t before = stream_number(stream, false);
  uint64_t recorded = 0;
  const Graph graph(stream, [&] { recorded = stream_number(stream, true); });
  EXPECT_EQ(recorded, before);
}

TEST(StreamState, EveryRecordingHasANumber) {
  const test::FakeDriver driver;
  const Stream stream;
  EXPECT_EQ(recording_number(stream), 0u);
  EXPECT_EQ(recording_number(StreamRef()), 0u);
  uint64_t first = 0, second = 0;
  const Graph a(stream, [&] { first = recording_number(stream); });
  const Graph b(stream, [&] { second = recording_number(stream); });
  EXPECT_NE(first, 0u);
  EXPECT_NE(second, 0u);
  EXPECT_NE(first, second);
  EXPECT_EQ(recording_number(stream), 0u);
}

TEST(StreamState, AStreamTellsItsEndOnce) {
  const test::FakeDriver driver;
  on_stream_end(note_end);
  std::optional<Stream> stream(std::in_place);
  const StreamRef ref = *stream;
  EXPECT_TRUE(tells_its_end(ref));
  EXPECT_TRUE(tells_its_end(StreamRef()));
  EXPECT_FALSE(tells_its_end(StreamRef(reinterpret_cast<CUstream_st*>(77))));
  std::optional<Stream> moved(std::move(*stream));
  stream.reset();
  EXPECT_EQ(ended, StreamRef());
  moved.reset();
  EXPECT_EQ(ended, ref);
  EXPECT_FALSE(tells_its_end(ref));
  on_stream_end(nullptr);
}

}  // namespace
}  // namespace tensorcraft::cuda
