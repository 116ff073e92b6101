// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/graph_pool.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace tensorcraft {
namespace {

using test::FakeDriver;

Tensor tensor(int64_t bytes, StreamRef stream) {
  return Tensor(DType::uint8, {bytes}, Device::cuda(0), stream);
}

TEST(GraphPool, GivesWhatIsFreedToTheCallsThatFollow) {
  FakeDriver fake;
  const Stream stream;
  {
    const GraphPool pool(stream);
    GraphPool::Recording recording(pool);
    const Graph graph(stream, [&] {
      const void* first = tensor(1000, stream).data();
      EXPECT_EQ(tensor(900, stream).data(), first);
      const Tensor held = tensor(1000, stream);
      EXPECT_EQ(held.data(), first);
      EXPECT_NE(tensor(1000, stream).data(), first);
      EXPECT_NE(tensor(100, stream).data(), first);  // which would waste most of it
    });
    recording.end();
    EXPECT_EQ(fake.blocks, 3);
    EXPECT_NE(tensor(1000, stream).data(), nullptr);  // the recording is over
    EXPECT_EQ(fake.blocks, 3);
  }
  EXPECT_EQ(fake.blocks, 0);
}

TEST(GraphPool, AllocatesOnAStreamThatIsNotRecorded) {
  FakeDriver fake;
  const Stream stream;
  {
    const GraphPool pool(stream);
    GraphPool::Recording recording(pool);
    const Graph graph(stream, [&] { tensor(10, stream); });
    recording.end();
    EXPECT_EQ(fake.calls["cuMemAllocAsync"], 1);
    EXPECT_EQ(fake.calls["cuMemFreeAsync"], 0);
  }
  EXPECT_EQ(fake.calls["cuMemFreeAsync"], 1);
  EXPECT_NE(fake.last_free, nullptr);
  EXPECT_NE(fake.last_free, stream.ref().handle());
}

TEST(GraphPool, LivesAsLongAsATensorOfIt) {
  FakeDriver fake;
  const Stream stream;
  std::optional<Tensor> result;
  {
    const GraphPool pool(stream);
    GraphPool::Recording recording(pool);
    const Graph graph(stream, [&] { result = tensor(10, stream); });
  }
  EXPECT_EQ(fake.blocks, 1);
  result.reset();
  EXPECT_EQ(fake.blocks, 0);
  EXPECT_EQ(allocator(Device::cuda(0)).statistics().live_blocks, 0);
}

TEST(GraphPool, KeepsOtherMemoryThatIsFreedUntilTheRecordingEnds) {
  FakeDriver fake;
  const Stream stream, other;
  std::optional<Tensor> before = tensor(10, other);
  const GraphPool pool(stream);
  GraphPool::Recording recording(pool);
  const Graph graph(stream, [&] { before.reset(); });
  EXPECT_EQ(fake.calls["cuMemFreeAsync"], 0);
  recording.end();
  EXPECT_EQ(fake.blocks, 0);
  EXPECT_EQ(fake.last_free, other.ref().handle());
}

TEST(GraphPool, LeavesOtherStreamsAndThreadsWithoutARecordingAlone) {
  FakeDriver fake;
  const Stream stream, other;
  const GraphPool pool(stream);
  GraphPool::Recording recording(pool);
  const Tensor elsewhere = tensor(10, other);
  recording.end();
  const Tensor later = tensor(10, stream);
  EXPECT_EQ(fake.blocks, 2);
}

TEST(GraphPool, AThreadRecordsOneGraphAtATime) {
  FakeDriver fake;
  const Stream stream;
  const GraphPool pool(stream);
  {
    const GraphPool::Recording recording(pool);
    test::expect_error(
        ErrorKind::value, [&] { GraphPool::Recording second(pool); },
        "Graph: this thread records another graph; end that recording first");
  }
  GraphPool::Recording(pool).end();  // the first is over
}

TEST(GraphPool, APoolThatGoesDuringAnotherRecordingWaitsForItsEnd) {
  FakeDriver fake;
  const Stream stream, other;
  std::optional<GraphPool> first(stream);
  {
    const GraphPool::Recording recording(*first);
    tensor(10, stream);
  }
  const GraphPool second(other);
  GraphPool::Recording recording(second);
  first.reset();
  EXPECT_EQ(fake.blocks, 1);
  recording.end();
  EXPECT_EQ(fake.blocks, 0);
}

}  // namespace
}  // namespace tensorcraft
