// SPDX-License-Identifier: Apache-2.0
// The contract (transfer_contract_test.cpp) runs over it; this is what only the device can show.
#include "tensorcraft/runtime/transfer/copy_device.hpp"

#include "tensorcraft/cuda/graph.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::transfer {
namespace {

using test::FakeDriver;
using test::FakeGpu;

TEST(CudaCopyDevice, KnowsPageableMemory) {
  const FakeDriver driver;
  const auto device = cuda_copy_device(0);
  const Stream stream;
  const PinnedBuffer pinned(100, stream);
  const std::vector<char> pageable(100);
  EXPECT_TRUE(device->is_pageable(pageable.data()));
  EXPECT_FALSE(device->is_pageable(pinned.data()));
  EXPECT_FALSE(device->is_pageable(static_cast<char*>(pinned.data()) + 50));
}

TEST(CudaCopyDevice, HasAStreamOfItsOwnForEachLane) {
  FakeDriver driver;
  const auto device = cuda_copy_device(0);
  EXPECT_EQ(driver.streams, 4);
  for (size_t i = 1; i < kDirections; ++i)
    EXPECT_NE(device->lane(Direction(i)), device->lane(Direction(i - 1)));
}

TEST(CudaCopyDevice, RefusesAStreamThatIsRecorded) {
  const FakeDriver driver;
  const auto device = cuda_copy_device(0);
  const Stream stream;
  const Graph graph(stream, [&] {
    test::expect_error(
        ErrorKind::value, [&] { device->make_mark(stream); },
        "TransferEngine: the stream is recorded into a graph; copy before or after the recording");
  });
}

TEST(CudaCopyDevice, CopiesToAnotherDevice) {
  FakeDriver driver({FakeGpu{}, FakeGpu{}});
  driver.deferred = true;
  constexpr int64_t kSize = 1000;
  const Tensor from = Tensor::from(std::vector<uint8_t>(kSize, 5), {kSize}, Device::cuda(0));
  const Tensor to(DType::uint8, {kSize}, Device::cuda(1));
  {
    TransferEngine engine(Device::cuda(0));
    const Transfer copy = engine.submit({.to = to.data(),
                                         .from = from.data(),
                                         .bytes = from.nbytes(),
                                         .direction = Direction::peer,
                                         .peer = 1,
                                         .after = {from.stream(), to.stream()}});
    copy.order_before(to.stream());
    EXPECT_EQ(to.to_vector<uint8_t>(), std::vector<uint8_t>(kSize, 5));
  }
  EXPECT_EQ(driver.damage(), "");
}

}  // namespace
}  // namespace tensorcraft::transfer
