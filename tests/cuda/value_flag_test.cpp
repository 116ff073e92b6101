// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/value_flag.hpp"

#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/cuda/wait_value.hpp"

#include "tests/support/flag_words.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tensorcraft {
namespace {

using test::flag_at;

TEST(ValueFlag, AConditionIsMetByTheFlagsThatItNames) {
  using enum WaitCondition;
  stream_wait_value(flag_at(std::vector{5}.data()), 5);
  stream_wait_value(flag_at(std::vector{5}.data()), -5);
  // A count that ran over its 32 bits is still behind the one before.
  stream_wait_value(flag_at(std::vector{INT32_MIN}.data()), INT32_MAX);
  stream_wait_value(flag_at(std::vector{-7}.data()), -7, {.condition = equal});
  stream_wait_value(flag_at(std::vector{6}.data()), 2, {.condition = and_bits});
  stream_wait_value(flag_at(std::vector{6}.data()), 2, {.condition = nor_bits});
}

TEST(ValueFlag, AThreadWaitsForTheValueOfAnother) {
  for (const Device device : {Device::cpu(), Device::simt()}) {
    int32_t flag = 0, result = 0;
    std::thread producer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      result = 42;
      stream_write_value(flag_at(&flag, device), 3);
    });
    stream_wait_value(flag_at(&flag, device), 3);
    EXPECT_EQ(result, 42);
    producer.join();
  }
}

TEST(ValueFlag, AnInterruptEndsAWaitOfTheHost) {
  int32_t flag = 0;
  const InterruptCheck before = set_interrupt_check([] { return true; });
  EXPECT_THROW(stream_wait_value(flag_at(&flag), 1), Error);
  set_interrupt_check(before);
}

}  // namespace
}  // namespace tensorcraft
