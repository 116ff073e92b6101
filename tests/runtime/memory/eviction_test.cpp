// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/eviction.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::memory {
namespace {

const auto any = [](const Movable&) { return true; };
void* address(size_t n) { return reinterpret_cast<void*>(n * 256); }

std::vector<BlockId> ids(const EvictionOrder& order) {
  std::vector<BlockId> found;
  for (const MemoryBlock& block : order.all()) found.push_back(block.id);
  return found;
}

TEST(EvictionOrder, IsThatOfTheLastAccess) {
  EvictionOrder order;
  for (size_t i = 1; i <= 4; ++i) EXPECT_EQ(order.add(i, address(i)).id, i);
  EXPECT_EQ(order.victim(any)->id, 1u);
  order.touch(order.get(1, "test"));
  EXPECT_EQ(order.victim(any)->id, 2u);
  EXPECT_EQ(ids(order), (std::vector<BlockId>{2, 3, 4, 1}));
  order.get(2, "test").pins = 1;
  EXPECT_EQ(order.victim(any)->id, 3u);
  EXPECT_EQ(order.victim([](const Movable& b) { return b.id != 3; })->id, 4u);
}

TEST(EvictionOrder, LeavesOutWhatIsOnTheHost) {
  EvictionOrder order;
  for (size_t i = 1; i <= 3; ++i) order.add(i, address(i));
  Movable& first = order.get(1, "test");
  first.host_data = std::exchange(first.device_ptr, nullptr);
  order.moved(first);
  EXPECT_TRUE(first.on_host());
  EXPECT_FALSE(first.on_gpu());
  EXPECT_EQ(order.victim(any)->id, 2u);
  first.device_ptr = std::exchange(first.host_data, nullptr);
  order.moved(first);
  EXPECT_EQ(ids(order), (std::vector<BlockId>{2, 3, 1}));
  order.remove(2);
  order.remove(1);
  EXPECT_EQ(order.victim(any)->id, 3u);
  order.remove(3);
  EXPECT_EQ(order.victim(any), nullptr);
}

TEST(EvictionOrder, RefusesAnIdThatThereIsNot) {
  EvictionOrder order;
  test::expect_error(
      ErrorKind::value, [&] { order.get(7, "pin"); },
      "pin: there is no block 7 in this pool; it was released, or is another pool's");
}

}  // namespace
}  // namespace tensorcraft::memory
