// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

// Every transfer engine promises this: over a simulation, over host memory, over a driver in host
// memory, over a GPU.
namespace tensorcraft::test {

using transfer::Direction;
using Bytes = std::vector<unsigned char>;

// A device, an engine on it, and memory of both sides, which lives as long as the source.
class TransferSource {
 public:
  virtual ~TransferSource() = default;
  virtual TransferEngine& engine() = 0;
  virtual StreamRef stream() = 0;  // of the caller's work
  virtual void* on_device(size_t bytes) = 0;
  virtual void* pinned(size_t bytes) = 0;
  // Enqueued on the caller's stream, which may be slow.
  virtual void fill(void* device, unsigned char value, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void slow_down() = 0;
  virtual void synchronize() = 0;
  // At once.
  void write(void* device, const Bytes& bytes) {
    void* const host = pinned(bytes.size());
    std::memcpy(host, bytes.data(), bytes.size());
    copy(device, host, bytes.size());
    synchronize();
  }
  Bytes read(const void* device, size_t bytes) {
    void* const host = pinned(bytes);
    copy(host, device, bytes);
    synchronize();
    const auto* const at = static_cast<const unsigned char*>(host);
    return {at, at + bytes};
  }
};

struct NamedTransferSource {
  std::string name;
  std::function<std::unique_ptr<TransferSource>(const transfer::Options&)> make;
};
inline std::ostream& operator<<(std::ostream& out, const NamedTransferSource& source) {
  return out << source.name;
}
inline std::string name_of_transfer_source(
    const testing::TestParamInfo<NamedTransferSource>& info) {
  return info.param.name;
}

inline Bytes pattern(size_t bytes, unsigned seed) {
  Bytes values(bytes);
  for (size_t i = 0; i < bytes; ++i)
    values[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
  return values;
}

// Goes on where the transfer ended.
struct Waiting {
  struct promise_type {
    Waiting get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

class TransferContract : public testing::TestWithParam<NamedTransferSource> {
 protected:
  static constexpr size_t kSlot = 256 << 10;  // no piece is smaller

  // Small slots, so that a test of some MiB has many pieces.
  static transfer::Options small() {
    transfer::Options options;
    options.slot_bytes = kSlot;
    options.slots = 3;
    options.direct_bytes = kSlot;
    options.window_bytes = 2 * kSlot;
    options.inline_bytes = 1000;
    return options;
  }
  void make(const transfer::Options& options) {
    source_ = nullptr;
    source_ = GetParam().make(options);
    if (!source_) GTEST_SKIP() << "there is no such device";
  }
  void SetUp() override { make(small()); }
  TransferSource& source() { return *source_; }

  Transfer up(void* to, const Bytes& from, int priority = 0) {
    return submit(Direction::h2d, to, from.data(), from.size(), priority);
  }
  Transfer down(Bytes& to, const void* from, int priority = 0) {
    return submit(Direction::d2h, to.data(), from, to.size(), priority);
  }
  Transfer submit(Direction direction, void* to, const void* from, size_t bytes, int priority = 0,
                  bool ahead = false, std::shared_ptr<const void> keep = nullptr) {
    return source_->engine().submit({.to = to,
                                     .from = from,
                                     .bytes = bytes,
                                     .direction = direction,
                                     .priority = priority,
                                     .after = {source_->stream()},
                                     .keep = std::move(keep),
                                     .ahead = ahead});
  }
  std::unique_ptr<TransferSource> source_;
};

TEST_P(TransferContract, CopiesEveryByteOfPageableMemory) {
  for (const size_t bytes : {size_t(1), size_t(997), size_t(1000), size_t(1001), kSlot - 1, kSlot,
                             kSlot + 1, 10 * kSlot + 77}) {
    const Bytes values = pattern(bytes, unsigned(bytes));
    void* const there = source().on_device(bytes);
    up(there, values).wait();
    EXPECT_EQ(source().read(there, bytes), values) << bytes;
    Bytes back(bytes, 0xAB);
    down(back, there).wait();
    EXPECT_EQ(back, values) << bytes;
  }
}

TEST_P(TransferContract, CopiesEveryByteOfPinnedMemoryAndWithinTheDevice) {
  for (const bool ahead : {false, true})
    for (const size_t bytes : {size_t(1), size_t(997), kSlot, 5 * kSlot + 77}) {
      const Bytes values = pattern(bytes, unsigned(bytes));
      void* const host = source().pinned(bytes);
      void* const there = source().on_device(bytes);
      void* const also = source().on_device(bytes);
      std::memcpy(host, values.data(), bytes);
      submit(Direction::h2d, there, host, bytes, 0, ahead).wait();
      submit(Direction::d2d, also, there, bytes, 0, ahead).wait();
      std::memset(host, 0, bytes);
      submit(Direction::d2h, host, also, bytes, 0, ahead).wait();
      EXPECT_EQ(std::memcmp(host, values.data(), bytes), 0) << bytes << ' ' << ahead;
    }
}

TEST_P(TransferContract, BytesMayBeProducedWhenTheyAreWanted) {
  for (const size_t bytes : {size_t(1), kSlot, 9 * kSlot + 7}) {
    const Bytes values = pattern(bytes, unsigned(bytes));
    void* const there = source().on_device(bytes);
    std::atomic<size_t> produced = 0;
    const auto produce = [&](void* to, size_t at, size_t size) {
      std::memcpy(to, values.data() + at, size);
      produced += size;
    };
    source()
        .engine()
        .submit({.to = there, .bytes = bytes, .produce = produce, .after = {source().stream()}})
        .wait();
    EXPECT_EQ(produced, bytes);
    EXPECT_EQ(source().read(there, bytes), values) << bytes;
  }
  const auto fails = [](void*, size_t at, size_t) {
    if (at > 0) fail(ErrorKind::io, "the file is shorter than it was");
  };
  void* const there = source().on_device(4 * kSlot);
  expect_error(
      ErrorKind::io,
      [&] { source().engine().submit({.to = there, .bytes = 4 * kSlot, .produce = fails}).wait(); },
      "the file is shorter than it was");
  expect_error_with(ErrorKind::value, "only h2d can produce", [&] {
    source().engine().submit(
        {.to = there, .bytes = 1, .produce = fails, .direction = Direction::d2h});
  });
}

TEST_P(TransferContract, BytesMayBeConsumedWhenTheyCome) {
  for (const size_t bytes : {size_t(1), kSlot, 9 * kSlot + 7}) {
    const Bytes values = pattern(bytes, unsigned(bytes));
    void* const host = source().pinned(bytes);
    void* const there = source().on_device(bytes);
    std::memcpy(host, values.data(), bytes);
    submit(Direction::h2d, there, host, bytes).wait();
    Bytes taken(bytes);
    std::atomic<size_t> consumed = 0;
    const auto consume = [&](const void* from, size_t at, size_t size) {
      std::memcpy(taken.data() + at, from, size);
      consumed += size;
    };
    source()
        .engine()
        .submit({.from = there,
                 .bytes = bytes,
                 .consume = consume,
                 .direction = Direction::d2h,
                 .after = {source().stream()}})
        .wait();
    EXPECT_EQ(consumed, bytes);
    EXPECT_EQ(taken, values) << bytes;
  }
  const auto fails = [](const void*, size_t at, size_t) {
    if (at > 0) fail(ErrorKind::io, "there is no place for it");
  };
  void* const there = source().on_device(4 * kSlot);
  const transfer::Request request{
      .from = there, .bytes = 4 * kSlot, .consume = fails, .direction = Direction::d2h};
  expect_error(
      ErrorKind::io, [&] { source().engine().submit(request).wait(); }, "there is no place for it");
  expect_error_with(ErrorKind::value, "only d2h can consume", [&] {
    source().engine().submit({.from = there, .bytes = 1, .consume = fails});
  });
}

TEST_P(TransferContract, NoBytesAreDoneAtOnce) {
  const Transfer none = submit(Direction::h2d, nullptr, nullptr, 0);
  none.wait();
  EXPECT_EQ(none.state(), transfer::State::completed);
  none.order_before(source().stream());
  Transfer().wait();
}

TEST_P(TransferContract, AMissingAddressIsRefused) {
  expect_error_with(ErrorKind::value, "an address is missing",
                    [&] { submit(Direction::d2d, nullptr, nullptr, 8); });
}

TEST_P(TransferContract, ReadsWhatTheCallersStreamWritesBefore) {
  constexpr size_t kBytes = 3 * kSlot;
  void* const there = source().on_device(kBytes);
  for (int round = 0; round < 10; ++round) {
    source().slow_down();
    source().fill(there, (unsigned char)(round + 1), kBytes);
    Bytes back(kBytes);
    down(back, there).wait();
    EXPECT_EQ(back, Bytes(kBytes, (unsigned char)(round + 1)));
  }
}

TEST_P(TransferContract, TheCallersStreamReadsWhatItWrote) {
  constexpr size_t kBytes = 3 * kSlot;
  void* const there = source().on_device(kBytes);
  void* const also = source().on_device(kBytes);
  for (unsigned round = 0; round < 10; ++round) {
    const Bytes values = pattern(kBytes, round);
    source().fill(there, 0, kBytes);
    const Transfer copy = up(there, values);
    copy.order_before(source().stream());
    source().copy(also, there, kBytes);
    EXPECT_EQ(source().read(also, kBytes), values);
    copy.wait();
  }
}

TEST_P(TransferContract, TheCallersStreamMayOverwriteTheSourceBehindIt) {
  constexpr size_t kBytes = 3 * kSlot;
  void* const there = source().on_device(kBytes);
  for (unsigned round = 0; round < 10; ++round) {
    const Bytes values = pattern(kBytes, round);
    source().write(there, values);
    Bytes back(kBytes);
    const Transfer copy = down(back, there);
    copy.order_before(source().stream());
    source().fill(there, 0xEE, kBytes);
    copy.wait();
    EXPECT_EQ(back, values);
  }
}

TEST_P(TransferContract, MemoryLivesUntilItEnds) {
  constexpr size_t kBytes = 4 * kSlot + 5;
  void* const there = source().on_device(kBytes);
  std::atomic<int> gone = 0;
  for (unsigned round = 0; round < 20; ++round) {
    // Overwritten as soon as it is let go of.
    auto values = std::shared_ptr<Bytes>(new Bytes(pattern(kBytes, round)), [&](Bytes* all) {
      std::fill(all->begin(), all->end(), 0xFF);
      ++gone;
      delete all;
    });
    const void* const from = values->data();
    const Transfer copy = submit(Direction::h2d, there, from, kBytes, 0, false, std::move(values));
    copy.order_before(source().stream());
    EXPECT_EQ(source().read(there, kBytes), pattern(kBytes, round));
  }
  for (int i = 0; i < 1000 && gone < 20; ++i) {
    source().engine().advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(gone, 20);
}

TEST_P(TransferContract, EachFutureResolvesOnceInTheOrderOfPriorities) {
  transfer::Options options = small();
  options.limits(Direction::h2d).max_in_flight = 1;
  make(options);
  constexpr size_t kBytes = 20 * kSlot;
  const Bytes values = pattern(kBytes, 1);
  void* const there = source().on_device(kBytes);
  bool was_seen = false;
  for (int round = 0; round < 100 && !was_seen; ++round) {
    std::mutex mutex;
    std::vector<int> order;
    std::vector<Transfer> all;
    for (int i = 0; const int priority : {0, 0, 2, 1, 2, -1}) {
      all.push_back(up(there, values, priority));
      all.back().on_end([&, i] {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      });
      ++i;
    }
    was_seen = !all[0].done();  // else the submitter was too slow to make a queue
    for (const Transfer& one : all) one.wait();
    const auto told = [&] {
      const std::lock_guard lock(mutex);
      return order.size();
    };
    for (int i = 0; i < 5000 && told() < 6; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(told(), 6u);
    // The first was alone when it came; those after it by priority, then in order.
    if (was_seen) {
      EXPECT_EQ(order, (std::vector<int>{0, 2, 4, 3, 1, 5}));
    }
  }
  EXPECT_TRUE(was_seen);
}

TEST_P(TransferContract, r12_cancel_frees_slot) {
  transfer::Options options = small();
  options.limits(Direction::h2d).max_in_flight = 1;
  make(options);
  constexpr size_t kBytes = 40 * kSlot;
  const Bytes values = pattern(kBytes, 1);
  void* const there = source().on_device(kBytes);
  void* const also = source().on_device(kBytes);
  const Transfer first = up(there, values);
  const Transfer second = up(there, values);
  const Transfer third = up(also, values);
  const bool was_in_time = second.cancel();  // a slow machine may have ended it
  third.wait();                              // begins once the second has left its place
  first.wait();
  EXPECT_FALSE(second.cancel());
  EXPECT_EQ(second.state(), was_in_time ? transfer::State::cancelled : transfer::State::completed);
  EXPECT_EQ(source().read(also, kBytes), values);
}

TEST_P(TransferContract, CancelledInAnyStateItEndsOnce) {
  constexpr size_t kBytes = 12 * kSlot;
  const Bytes values = pattern(kBytes, 1);
  void* const there = source().on_device(kBytes);
  std::atomic<int> ended = 0, asked = 0;
  for (int round = 0; round < 40; ++round) {
    Bytes back(kBytes);
    const Transfer copy = round % 2 ? up(there, values) : down(back, there);
    copy.on_end([&] { ++ended; });
    ++asked;
    if (round % 4 < 2) std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    const bool cancelled = copy.cancel();
    if (!cancelled) {
      EXPECT_EQ(copy.state(), transfer::State::completed);
      continue;
    }
    expect_error(
        ErrorKind::cancelled, [&] { copy.wait(); },
        "the transfer was cancelled; its destination is undefined");
    EXPECT_EQ(copy.state(), transfer::State::cancelled);
  }
  up(there, values).wait();
  EXPECT_EQ(source().read(there, kBytes), values);
  for (int i = 0; i < 5000 && ended < asked; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ended, asked);
}

TEST_P(TransferContract, ACoroutineWaitsForIt) {
  constexpr size_t kBytes = 4 * kSlot;
  const Bytes values = pattern(kBytes, 3);
  void* const there = source().on_device(kBytes);
  std::atomic<int> at = 0;
  Bytes back(kBytes);
  const auto round_trip = [&]() -> Waiting {
    co_await up(there, values);
    at = 1;
    co_await down(back, there);
    at = 2;
  };
  round_trip();
  for (int i = 0; i < 5000 && at < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(at, 2);
  EXPECT_EQ(back, values);
}

TEST_P(TransferContract, ItsOwnThreadDoesNotWaitForItself) {
  constexpr size_t kBytes = 2 * kSlot;
  const Bytes values = pattern(kBytes, 3);
  void* const there = source().on_device(kBytes);
  std::atomic<int> kind = -1;
  const Transfer first = up(there, values);
  Transfer second;
  first.on_end([&] {
    try {
      second = up(there, values);
      second.wait();
      kind = -2;
    } catch (const Error& error) {
      kind = int(error.kind());
    }
  });
  first.wait();
  for (int i = 0; i < 5000 && kind == -1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // It had ended before it was asked about, or the engine's thread was refused.
  EXPECT_TRUE(kind == int(ErrorKind::value) || kind == -2) << kind;
  second.wait();
}

TEST_P(TransferContract, ManyThreadsGetTheirBytes) {
  constexpr int kThreads = 4, kRounds = 15;
  constexpr size_t kBytes = 2 * kSlot + 3;
  std::vector<void*> there;
  for (int t = 0; t < kThreads; ++t) there.push_back(source().on_device(kBytes));
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const Bytes values = pattern(kBytes, unsigned(t * 100 + round));
        Bytes back(kBytes);
        up(there[size_t(t)], values, round % 3).wait();
        down(back, there[size_t(t)], round % 2).wait();
        wrong += back != values;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
  const transfer::Statistics all = source().engine().statistics();
  for (const Direction direction : {Direction::h2d, Direction::d2h}) {
    const transfer::LaneStatistics& lane = all[size_t(direction)];
    EXPECT_EQ(lane.completed, uint64_t(kThreads * kRounds));
    EXPECT_EQ(lane.bytes, uint64_t(kThreads * kRounds) * kBytes);
    EXPECT_EQ(lane.queued + lane.running + lane.failed + lane.cancelled, 0u);
    EXPECT_GT(lane.gb_per_s(), 0);
  }
}

TEST_P(TransferContract, TheEngineMayGoFirst) {
  constexpr size_t kBytes = 30 * kSlot;
  const Bytes values = pattern(kBytes, 1);
  transfer::Options options = small();
  options.limits(Direction::h2d).max_in_flight = 1;
  make(options);
  void* const there = source().on_device(kBytes);
  const Transfer first = up(there, values), second = up(there, values);
  source_.reset();
  EXPECT_TRUE(first.done());
  EXPECT_TRUE(second.done());
  EXPECT_FALSE(second.cancel());
}

}  // namespace tensorcraft::test
