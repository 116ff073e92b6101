// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream_counter.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tensorcraft::cuda {
namespace {

using test::FakeDriver, test::FakeGpu;

TEST(StreamCounter, AStreamKeepsItsOwnWhichIsClearedOnce) {
  FakeDriver fake;
  const Stream a, b;
  uint32_t* const counter = counter_of(a);
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(*counter, 0u);
  EXPECT_EQ(counter_of(a), counter);
  EXPECT_NE(counter_of(b), counter);
  EXPECT_NE(counter_of(StreamRef()), counter);
  EXPECT_EQ(fake.calls["cuMemsetD8Async"], 3);
  EXPECT_EQ(fake.damage(), "");
}

TEST(StreamCounter, IsClearedInTheOrderOfItsStream) {
  FakeDriver fake;
  fake.deferred = true;
  const Stream stream;
  uint32_t* const counter = counter_of(stream);
  ASSERT_NE(counter, nullptr);
  *counter = 7;
  stream.ref().synchronize();
  EXPECT_EQ(*counter, 0u);
}

TEST(StreamCounter, AHandleThatIsUsedAgainIsAnotherStream) {
  FakeDriver fake;
  const Stream stream;
  uint32_t* const counter = counter_of(stream);
  fake.streams_before = 1;
  EXPECT_NE(counter_of(stream), counter);
}

TEST(StreamCounter, EachDeviceHasItsOwn) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  const Stream first(0), second(1);
  ASSERT_NE(counter_of(first), nullptr);
  ASSERT_NE(counter_of(second), nullptr);
  EXPECT_EQ(fake.damage(), "");
}

TEST(StreamCounter, NoneWhileTheStreamIsRecorded) {
  FakeDriver fake;
  const Stream stream;
  uint32_t* recorded = counter_of(stream);
  EXPECT_NE(recorded, nullptr);
  const Graph graph(stream, [&] { recorded = counter_of(stream); });
  EXPECT_EQ(recorded, nullptr);
}

TEST(StreamCounter, NoneBeyondTheMostStreams) {
  FakeDriver fake;
  std::vector<Stream> streams(StreamCounters::kMax + 1);
  std::set<uint32_t*> counters;
  for (const Stream& stream : streams) counters.insert(counter_of(stream));
  EXPECT_EQ(counters.size(), StreamCounters::kMax + 1);
  EXPECT_EQ(counter_of(streams.back()), nullptr);
  EXPECT_NE(counter_of(streams.front()), nullptr);
}

TEST(StreamCounter, NoneWhereTheDriverRefuses) {
  for (const char* call : {"cuStreamGetId", "cuMemAlloc", "cuMemsetD8Async"}) {
    FakeDriver fake;
    const Stream stream;
    fake.failing[call] = kErrorInvalidValue;
    EXPECT_EQ(counter_of(stream), nullptr) << call;
    fake.failing.clear();
    EXPECT_NE(counter_of(stream), nullptr) << call;
  }
}

}  // namespace
}  // namespace tensorcraft::cuda
