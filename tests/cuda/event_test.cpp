// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace tensorcraft {
namespace {

using namespace std::chrono_literals;
using test::expect_error, test::FakeDriver;

// Bytes of page-locked memory.
struct Bytes {
  Bytes() : all(static_cast<char*>(cuda::allocate_pinned(64))) { std::fill_n(all, 64, 0); }
  ~Bytes() { cuda::deallocate_pinned(all); }
  char* all;
};

TEST(EventValue, AThreadOfTheHostWaitsForAnother) {
  for (const Device device : {Device::cpu(), Device::simt()}) {
    Event event(device);
    int result = 0;
    EXPECT_EQ(event.value(), 0);
    event.wait(0, {});
    std::thread producer([&] {
      for (int i = 1; i <= 100; ++i) {
        result = i;
        event.record(i, {});
      }
    });
    event.wait(100, {}, 10s);
    EXPECT_EQ(result, 100);
    producer.join();
    EXPECT_EQ(event.value(), 100);
    EXPECT_TRUE(event.done());
    event.synchronize();
  }
}

TEST(EventValue, AProducerThatDiesIsATypedTimeOut) {
  Event event(Device::cpu());
  event.record(1, {});
  expect_error(
      ErrorKind::timed_out, [&] { event.wait(2, {}, 2ms); },
      "Event: the count was still 1 after 0.002 s, expected at least 2; is who records it still at "
      "work?");
  expect_error(
      ErrorKind::timed_out, [&] { event.synchronize(2, 2ms); },
      "Event: the count was still 1 after 0.002 s, expected at least 2; is who records it still at "
      "work?");
  event.record(2, {});
  event.wait(2, {}, 2ms);
}

TEST(EventValue, OfAHostHasNoPoint) {
  Event event(Device::cpu());
  expect_error(
      ErrorKind::value, [&] { event.record(StreamRef()); },
      "Event::record: the event belongs to cpu and the stream to cuda:0; use a stream of the "
      "event's device");
  EXPECT_THROW(event.wait(StreamRef()), Error);
}

TEST(EventValue, AWaitMayBeEnqueuedBeforeTheRecord) {
  for (const bool by_host : {false, true}) {
    FakeDriver fake;
    fake.deferred = true;
    {
      const Bytes bytes;
      const Stream producer, consumer;
      Event event;
      for (int i = 1; i <= 3; ++i) {
        event.wait(i, consumer);
        cuda::copy_async(bytes.all + i, bytes.all, 1, consumer);
      }
      for (int i = 1; i <= 3; ++i) {
        cuda::fill_async(bytes.all, static_cast<unsigned char>(i), 1, producer);
        if (by_host && i == 3) {
          producer.ref().synchronize();
          event.set(3);
        } else {
          event.record(i, producer);
        }
      }
      consumer.ref().synchronize();
      // Later values may come before the copy of an earlier one.
      for (int i = 1; i <= 3; ++i) EXPECT_GE(bytes.all[i], i) << by_host;
      event.synchronize(3, 1s);
      EXPECT_EQ(event.value(), 3);
    }
    EXPECT_EQ(fake.damage(), "");
    EXPECT_EQ(fake.events, 0);
  }
}

TEST(EventValue, AWaitThatNothingEndsIsSeenByTheTests) {
  FakeDriver fake;
  fake.deferred = true;
  const Stream consumer;
  Event event;
  event.wait(1, consumer);
  consumer.ref().synchronize();
  EXPECT_NE(fake.damage().find("a stream waits for a value for ever"), std::string::npos);
}

TEST(EventValue, ALimitedWaitIsAKernelAndItsTimeOutIsRemembered) {
  FakeDriver fake;
  struct Params {
    uint32_t *flag, *abort, *timed_out;
    int64_t limit_ns;
    uint32_t value, condition;
  };
  fake.on_launch = [](const test::FakeLaunch& launch, const void* params) {
    const auto& p = *static_cast<const Params*>(params);
    EXPECT_EQ(launch.grid.count(), 1u);
    EXPECT_EQ(p.limit_ns, 2'000'000);
    EXPECT_EQ(p.value, 5u);
    if (*p.flag < p.value) *p.timed_out = 1;
  };
  const Stream stream;
  Event event;
  event.wait(5, stream, 2ms);
  EXPECT_EQ(fake.launches.size(), 1u);
  expect_error(
      ErrorKind::timed_out, [&] { event.value(); },
      "Event: a stream waited for a value until its time was over, and the count is 0; what the "
      "stream did since came too early, and this event cannot be used again");
  EXPECT_THROW(event.record(5, stream), Error);
  EXPECT_THROW(event.wait(5, stream), Error);
  Event other;
  other.record(5, stream);
  other.wait(5, stream, 2ms);
  EXPECT_EQ(other.value(), 5);
}

// Streams may still use the count of an event that is gone.
TEST(EventValue, TheCountOfAnEventThatIsGoneIsNotTakenTooEarly) {
  FakeDriver fake;
  fake.deferred = true;
  const Stream stream;
  for (int i = 0; i < 200; ++i) {
    Event event;
    event.record(7, stream);
    Event next;
    EXPECT_EQ(next.value(), 0);
    if (i % 10 == 0) stream.ref().synchronize();
    EXPECT_EQ(next.value(), 0) << "a write of an event before came too late";
  }
  EXPECT_LE(fake.calls["cuMemHostAlloc"], 2);
}

TEST(EventValue, AGraphRecordsWaitsAndWrites) {
  FakeDriver fake;
  fake.deferred = true;
  {
    const Bytes bytes;
    const Stream recorded, producer;
    Event ready;
    const Graph graph(recorded, [&] {
      ready.wait(1, recorded);
      cuda::copy_async(bytes.all + 1, bytes.all, 1, recorded);
      ready.record(0, recorded);  // for the next launch
    });
    for (int turn = 1; turn <= 3; ++turn) {
      graph.launch(recorded);
      cuda::fill_async(bytes.all, static_cast<unsigned char>(turn), 1, producer);
      ready.record(1, producer);
      recorded.ref().synchronize();
      EXPECT_EQ(bytes.all[1], turn);
      EXPECT_EQ(ready.value(), 0);
    }
  }
  EXPECT_EQ(fake.damage(), "");
}

}  // namespace
}  // namespace tensorcraft
