// SPDX-License-Identifier: Apache-2.0
// Streams that wait for values on a real GPU; skipped if there is none.
#include "tensorcraft/cuda/wait_value.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/ops/elementwise/expression.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace tensorcraft::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// By the driver, or by the kernel that stands in for it.
class WaitValueOnGpu : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
    if (!GetParam()) return;
    real_ = &cuda::require_driver();
    table_ = *real_;
    table_.stream_wait_value.function = nullptr;
    cuda::set_driver_for_test(&table_);
  }
  void TearDown() override {
    if (real_) cuda::set_driver_for_test(nullptr);
  }

 private:
  const cuda::Driver* real_ = nullptr;
  cuda::Driver table_;
};

// A word of page-locked memory.
struct Word {
  Word() : at(static_cast<int32_t*>(cuda::allocate_pinned(64))) { *at = 0; }
  ~Word() { cuda::deallocate_pinned(at); }
  TensorView flag() const { return {at, DType::int32, {1}}; }
  int32_t* at;
};

TEST_P(WaitValueOnGpu, ProducerAndConsumerInEveryOrder) {
  constexpr int kTurns = 10'000;
  const Device gpu = Device::cuda(0);
  const Stream producer, consumer;
  const Tensor ready(DType::int32, {1}, gpu), taken(DType::int32, {1}, gpu);
  const Tensor x(DType::int32, {1}, gpu), seen(DType::int32, {kTurns}, gpu);
  for (const Tensor* t : {&ready, &taken, &x}) cuda::fill_async(t->data(), 0, 4, StreamRef());
  StreamRef().synchronize();
  const auto produce = [&](int turn) {
    stream_wait_value(taken, turn - 1, {.stream = producer});
    cuda::fill_async(x.data(), static_cast<unsigned char>(turn % 251), 4, producer);
    stream_write_value(ready, turn, producer.ref());
  };
  const auto consume = [&](int turn) {
    stream_wait_value(ready, turn, {.stream = consumer});
    cuda::copy_async(seen.data_as<int32_t>() + turn - 1, x.data(), 4, consumer);
    stream_write_value(taken, turn, consumer.ref());
  };
  for (int turn = 1; turn <= kTurns; ++turn) {
    const bool consumer_first = turn % 3 == 0;
    if (consumer_first) consume(turn);
    produce(turn);
    if (!consumer_first) consume(turn);
    if (turn % 500 == 0) consumer.ref().synchronize();  // queues are finite
  }
  consumer.ref().synchronize();
  const auto values = seen.to_vector<int32_t>();
  for (int turn = 1; turn <= kTurns; ++turn)
    ASSERT_EQ(values[size_t(turn - 1)], turn % 251 * 0x01010101) << turn;
}

TEST_P(WaitValueOnGpu, AnEventMayBeWaitedForBeforeItIsRecorded) {
  const Stream producer, consumer;
  const Word word;
  const Tensor seen(DType::int32, {1}, Device::cuda(0));
  for (int turn = 1; turn <= 200; ++turn) {
    Event event;
    event.wait(1, consumer);
    cuda::copy_async(seen.data(), word.at, 4,
                     consumer);  // from host to host would wait for the stream
    cuda::fill_async(word.at, static_cast<unsigned char>(turn), 4, producer);
    turn % 2 ? event.record(1, producer) : (producer.ref().synchronize(), event.set(1));
    consumer.ref().synchronize();
    ASSERT_EQ(seen.to_vector<int32_t>()[0], (turn % 256) * 0x01010101) << turn;
    ASSERT_EQ(event.value(), 1);
  }
}

TEST_P(WaitValueOnGpu, AGraphWaitsAndWrites) {
  const Stream recorded, producer;
  const Word word;
  Event ready;
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3}, {3}, Device::cuda(0)),
               y(DType::float32, {3}, Device::cuda(0));
  elementwise(y, "x + 1", {{"x", x}}, {.stream = recorded.ref()});  // compiles
  ready.wait(0, recorded);
  recorded.ref().synchronize();
  const Graph graph(recorded, [&] {
    ready.wait(1, recorded);
    elementwise(y, "x + 1", {{"x", x}}, {.stream = recorded.ref()});
    ready.record(0, recorded);  // for the next launch
  });
  for (int turn = 1; turn <= 1000; ++turn) {
    graph.launch(recorded);
    cuda::fill_async(x.data(), static_cast<unsigned char>(turn % 100), x.nbytes(), producer);
    ready.record(1, producer);
    recorded.ref().synchronize();
    if (turn % 100) continue;
    const float filled = x.to_vector<float>()[0];
    ASSERT_EQ(y.to_vector<float>()[0], filled + 1) << turn;
  }
}

TEST_P(WaitValueOnGpu, AProducerThatDiesIsATypedTimeOut) {
  const Stream consumer;
  Event event;
  const auto begin = Clock::now();
  event.wait(1, consumer, 20ms);
  consumer.ref().synchronize();
  const auto waited = Clock::now() - begin;
  EXPECT_GE(waited, 20ms);
  EXPECT_LE(waited, 2s);
  try {
    event.value();
    ADD_FAILURE() << "no time-out";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timed_out) << error.what();
  }
  Event other;
  other.wait(1, consumer, 10s);
  other.set(1);
  consumer.ref().synchronize();
  EXPECT_EQ(other.value(), 1);
}

TEST_P(WaitValueOnGpu, EveryConditionIsThatOfTheHost) {
  const Stream stream;
  const Word word;
  struct One {
    WaitCondition condition;
    int32_t not_yet, then, value;
  };
  for (const One& one :
       {One{WaitCondition::at_least, 4, 5, 5}, One{WaitCondition::at_least, -1, 0, 0},
        One{WaitCondition::equal, 9, 5, 5}, One{WaitCondition::and_bits, 4, 6, 2},
        One{WaitCondition::nor_bits, -1, 1, 2}}) {
    *word.at = one.not_yet;
    Event passed;
    stream_wait_value(word.flag(), one.value, {.condition = one.condition, .stream = stream});
    passed.record(stream);
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(passed.done()) << int(one.condition);
    std::atomic_ref(*word.at).store(one.then);
    passed.synchronize();
  }
}

// From the write of the host to a write of the stream behind it, as the host sees it.
using WaitValueOnGpuTiming = WaitValueOnGpu;
TEST_P(WaitValueOnGpuTiming, TheWayFromTheHostIsShort) {
  const Stream stream;
  const Word word, answer;
  std::vector<double> us;
  for (int turn = 1; turn <= 200; ++turn) {
    stream_wait_value(word.flag(), turn, {.stream = stream});
    stream_write_value(answer.flag(), turn, stream.ref());
    std::this_thread::sleep_for(200us);
    const auto begin = Clock::now();
    std::atomic_ref(*word.at).store(turn, std::memory_order_release);
    while (std::atomic_ref(*answer.at).load(std::memory_order_acquire) != turn) {
    }
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::ranges::sort(us);
  std::printf("host write, wait, write: %.2f us in the middle, %.2f at best\n", us[us.size() / 2],
              us[0]);
  EXPECT_LT(us[us.size() / 2], 100);
}

std::string mechanism(const testing::TestParamInfo<bool>& info) {
  return info.param ? "kernel" : "driver";
}
INSTANTIATE_TEST_SUITE_P(By, WaitValueOnGpu, testing::Bool(), mechanism);
INSTANTIATE_TEST_SUITE_P(By, WaitValueOnGpuTiming, testing::Bool(), mechanism);

}  // namespace
}  // namespace tensorcraft::test
