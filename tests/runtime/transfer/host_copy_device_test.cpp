// SPDX-License-Identifier: Apache-2.0
// The contract (transfer_contract_test.cpp) runs over it; this is what only the device can show.
#include "tensorcraft/runtime/transfer/copy_device.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/no_threads.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::transfer {
namespace {

TEST(HostCopyDevice, ALaneKeepsItsOrderAndLanesHaveNone) {
  const auto device = host_copy_device();
  std::vector<int> a(1 << 20, 1), b(1 << 20), c(1 << 20);
  const size_t bytes = a.size() * sizeof(int);
  const Request up{.direction = Direction::h2d};
  device->copy(up, b.data(), a.data(), bytes);
  device->copy(up, c.data(), b.data(), bytes);
  const StreamRef lane = device->lane(Direction::h2d);
  const auto mark = device->make_mark(lane);
  mark->record(lane);
  mark->wait();
  EXPECT_TRUE(mark->done());
  EXPECT_EQ(c, a);
  const auto other = device->make_mark(device->lane(Direction::d2h));
  other->record(device->lane(Direction::d2h));
  EXPECT_TRUE(other->done());
}

TEST(HostCopyDevice, ACopyThatNoThreadCanMakeIsNoneOfItsLane) {
  const auto device = host_copy_device();
  const Request request{.direction = Direction::h2d};
  const int one = 1, two = 2;
  int refused = 0, copied = 0;
  {
    const test::NoThreads none;
    test::expect_error_with(ErrorKind::out_of_memory,
                            "TransferEngine: the system starts no further",
                            [&] { device->copy(request, &refused, &one, sizeof one); });
  }
  device->copy(request, &copied, &two, sizeof two);
  device->synchronize(device->lane(Direction::h2d));
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(copied, 2);
}

TEST(HostCopyDevice, WorkOfTheHostIsDoneWhenItReturns) {
  const auto device = host_copy_device();
  const auto mark = device->make_mark(StreamRef());
  EXPECT_TRUE(mark->done());
  mark->record(StreamRef());
  EXPECT_TRUE(mark->done());
  mark->order_before(device->lane(Direction::d2d));
}

}  // namespace
}  // namespace tensorcraft::transfer
