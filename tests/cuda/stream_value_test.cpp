// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream_value.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/wait_value.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/flag_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft {
namespace {

using test::FakeDriver, test::Words;

TEST(StreamValue, AStreamWaitsForWhatIsWrittenLater) {
  FakeDriver fake;
  fake.deferred = true;
  {
    const Words words;
    const Stream producer, consumer;
    stream_wait_value(words.flag(), 2, {.stream = consumer});
    cuda::copy_async(words.all + 2, words.all + 1, 4, consumer);
    cuda::fill_async(words.all + 1, 7, 4, producer);
    stream_write_value(words.flag(), 2, producer.ref());
    consumer.ref().synchronize();
    EXPECT_EQ(words.all[2], 0x07070707);
    EXPECT_EQ(words.all[0], 2);
  }
  EXPECT_EQ(fake.damage(), "");
}

}  // namespace
}  // namespace tensorcraft
