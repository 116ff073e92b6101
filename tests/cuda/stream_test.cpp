// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <type_traits>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::FakeGpu;

static_assert(!std::is_constructible_v<StreamRef, int>);
static_assert(!std::is_constructible_v<StreamRef, std::nullptr_t>);
static_assert(!std::is_copy_constructible_v<Stream> && !std::is_copy_constructible_v<Event>);

TEST(Stream, ReleasesWhatItOwnsOnce) {
  FakeDriver fake;
  {
    Stream a, b;
    Event e, timing(0, true);
    EXPECT_EQ(fake.streams, 2);
    EXPECT_EQ(fake.events, 2);
    Stream moved = std::move(a);
    b = std::move(moved);
    Event moved_event = std::move(e);
    timing = std::move(moved_event);
  }
  EXPECT_EQ(fake.streams, 0);
  EXPECT_EQ(fake.events, 0);
  EXPECT_EQ(fake.calls["cuStreamDestroy"], 2);
  EXPECT_EQ(fake.calls["cuEventDestroy"], 2);
}

TEST(Stream, BelongsToItsDevice) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  Stream stream(1);
  EXPECT_EQ(stream.ref().device(), 1);
  EXPECT_NO_THROW(stream.ref().synchronize());
  EXPECT_EQ(FakeDriver::current_context(), nullptr);
}

TEST(Stream, SynchronizeThrowsWhatTheWorkFailedWith) {
  FakeDriver fake;
  Stream stream;
  fake.failing["cuStreamSynchronize"] = 719;
  EXPECT_THROW(stream.ref().synchronize(), Error);
}

TEST(Stream, KnowsThatItRecordsAGraph) {
  FakeDriver fake;
  const Stream stream;
  EXPECT_FALSE(stream.ref().is_capturing());
  fake.capturing = true;
  EXPECT_TRUE(stream.ref().is_capturing());
  fake.failing["cuStreamIsCapturing"] = 906;  // the default stream beside a captured one
  EXPECT_TRUE(StreamRef().is_capturing());
  fake.failing["cuStreamIsCapturing"] = 1;
  EXPECT_THROW(stream.ref().is_capturing(), Error);
}

TEST(CurrentStream, IsTheDefaultStreamUntilItIsSet) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  Stream stream(1);
  EXPECT_EQ(current_stream(1).handle(), nullptr);
  set_current_stream(stream);
  EXPECT_EQ(current_stream(1), stream.ref());
  EXPECT_EQ(current_stream(0).handle(), nullptr);
  EXPECT_EQ(current_stream(0).device(), 0);
  std::thread([] { EXPECT_EQ(current_stream(1).handle(), nullptr); }).join();
  set_current_stream(StreamRef::default_stream(1));
  EXPECT_EQ(current_stream(1).handle(), nullptr);
}

// Asks for the current stream after the thread's list of streams is gone, as a tensor with static
// storage does.
struct AsksLate {
  CUstream_st** seen = nullptr;
  ~AsksLate() {
    if (seen) *seen = current_stream(0).handle();
  }
};

TEST(CurrentStream, IsTheDefaultStreamWhileAThreadEnds) {
  auto* const handle = reinterpret_cast<CUstream_st*>(64);
  CUstream_st* seen = handle;
  std::thread([&] {
    thread_local AsksLate late;  // made before the list, so destroyed after it
    late.seen = &seen;
    set_current_stream(StreamRef(handle));
    EXPECT_EQ(current_stream(0).handle(), handle);
  }).join();
  EXPECT_EQ(seen, nullptr);
}

TEST(Event, IsDoneWhenTheDriverSaysSo) {
  FakeDriver fake;
  Event event;
  event.record(StreamRef());
  EXPECT_TRUE(event.done());
  fake.failing["cuEventQuery"] = cuda::kErrorNotReady;
  EXPECT_FALSE(event.done());
  fake.failing["cuEventQuery"] = 400;
  EXPECT_THROW(event.done(), Error);
}

TEST(Event, ElapsedWaitsForTheLaterEvent) {
  FakeDriver fake;
  Event begin(0, true), end(0, true);
  begin.record(StreamRef());
  fake.clock_ms += 3;
  end.record(StreamRef());
  EXPECT_EQ(Event::elapsed_ms(begin, end), 3);
  EXPECT_EQ(fake.calls["cuEventSynchronize"], 1);
}

TEST(Event, OrdersStreamsOfTwoDevices) {
  FakeDriver fake({FakeGpu{}, FakeGpu{}});
  Stream first(0), second(1);
  Event event(0);
  event.record(first);
  event.wait(second);
  EXPECT_EQ(fake.calls["cuStreamWaitEvent"], 1);
  EXPECT_THROW(event.record(second), Error);
}

}  // namespace
}  // namespace tensorcraft
