// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/graph.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>

namespace tensorcraft {
namespace {

using test::FakeDriver;

static_assert(!std::is_copy_constructible_v<Graph>);

TEST(Graph, RunsWhatWasRecordedAtEachLaunch) {
  FakeDriver fake;
  const Stream stream;
  unsigned char bytes[2] = {1, 1};
  {
    const Graph graph(stream, [&] { cuda::fill_async(bytes, 7, 1, stream); });
    EXPECT_EQ(bytes[0], 1);
    EXPECT_FALSE(stream.ref().is_capturing());
    graph.launch(stream);
    EXPECT_EQ(bytes[0], 7);
    EXPECT_EQ(bytes[1], 1);
    bytes[0] = 1;
    graph.launch(stream);
    EXPECT_EQ(bytes[0], 7);
  }
  EXPECT_EQ(fake.graphs, 0);
}

TEST(Graph, MovesWhatItOwns) {
  FakeDriver fake;
  const Stream stream;
  {
    Graph a(stream, [] {}), b(stream, [] {});
    Graph moved = std::move(a);
    b = std::move(moved);
    b.launch(stream);
  }
  EXPECT_EQ(fake.calls["cuGraphLaunch"], 1);
  EXPECT_EQ(fake.graphs, 0);
}

TEST(Graph, EndsTheRecordingWhereTheWorkFails) {
  FakeDriver fake;
  const Stream stream;
  EXPECT_THROW(Graph(stream, [] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(stream.ref().is_capturing());
  EXPECT_EQ(fake.graphs, 0);
}

TEST(Graph, FreesTheRecordingThatIsRefused) {
  FakeDriver fake;
  const Stream stream;
  fake.failing["cuGraphInstantiateWithFlags"] = 801;
  EXPECT_THROW(Graph(stream, [] {}), Error);
  EXPECT_EQ(fake.graphs, 0);
}

TEST(Graph, TakesNoDefaultStream) {
  FakeDriver fake;
  try {
    Graph(StreamRef(), [] {});
    FAIL() << "the default stream was recorded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_STREQ(
        error.what(),
        "Graph: the default stream of cuda:0 cannot be recorded; give a stream of your own");
  }
}

}  // namespace
}  // namespace tensorcraft
