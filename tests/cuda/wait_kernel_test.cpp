// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/wait_kernel.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/wait_value.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/flag_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft {
namespace {

using test::FakeDriver, test::Words;

TEST(WaitKernel, WhereTheDriverCannotAKernelWaits) {
  FakeDriver fake({{}}, 13000, {{"cuStreamWaitValue32", 801}});
  const Words words;
  const Stream stream;
  stream_wait_value(words.flag(), 2, {.condition = WaitCondition::equal, .stream = stream});
  stream_wait_value(words.flag(), 2, {.stream = stream});
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[0].grid.count() * fake.launches[0].block.count(), 1u);
  EXPECT_EQ(fake.calls["cuLibraryLoadData"], 1);
}

}  // namespace
}  // namespace tensorcraft
