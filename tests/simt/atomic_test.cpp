// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace tensorcraft::simt {
namespace {

struct Cells {
  int32_t sum = 0, smallest = 0, largest = 0;
  uint32_t highest = 0, last = 0, turns = 0;
  float real = 0;
  uint64_t wide = 0, product = 1;
  Vec2<f16> halves{f16(0.0f), f16(0.0f)};
  Vec2<bf16> brains{bf16(0.0f), bf16(0.0f)};
};

TEST(SimtAtomic, KeepsTheUpdatesOfEveryBlock) {
  Cells cells;
  launch(
      {.name = "k", .grid = {16}, .block = {64}},
      [](const void* params) {
        Cells& c = **static_cast<Cells* const*>(params);
        const int i = int(blockIdx.x * 64 + threadIdx.x);
        atomic_add(&c.sum, i);
        atomic_min(&c.smallest, -i);
        atomic_max(&c.largest, i);
        atomic_max(&c.highest, uint32_t(i));
        atomic_increment(&c.turns, 99u);
        atomic_exchange(&c.last, 7u);
        atomic_add(&c.real, 0.5f);
        atomic_add(&c.wide, uint64_t(1) << 32);
        for (uint64_t old = c.product; i == 0 && old != 3 * (old / 3);)
          old = atomic_cas(&c.product, old, uint64_t(3));
        atomic_add(&c.halves, Vec2<f16>{f16(1.0f), f16(-1.0f)});
        if (i < 200) atomic_add(&c.brains, Vec2<bf16>{bf16(1.0f), bf16(0.5f)});
      },
      std::array{&cells}.data());
  EXPECT_EQ(cells.sum, 1023 * 512);
  EXPECT_EQ(cells.smallest, -1023);
  EXPECT_EQ(cells.largest, 1023);
  EXPECT_EQ(cells.highest, 1023u);
  EXPECT_EQ(cells.turns, 1024u % 100u);
  EXPECT_EQ(cells.last, 7u);
  EXPECT_EQ(cells.real, 512.0f);
  EXPECT_EQ(cells.wide, uint64_t(1024) << 32);
  EXPECT_EQ(cells.product, 3u);
  EXPECT_EQ(float(cells.halves[0]), 1024.0f);
  EXPECT_EQ(float(cells.halves[1]), -1024.0f);
  EXPECT_EQ(float(cells.brains[0]), 200.0f);
  EXPECT_EQ(float(cells.brains[1]), 100.0f);
}

TEST(SimtAtomic, ReportsAnAddressThatIsNotAligned) {
  alignas(8) unsigned char bytes[16] = {};
  try {
    launch(
        {.name = "k"},
        [](const void* params) {
          atomic_add(reinterpret_cast<uint64_t*>(const_cast<void*>(params)), uint64_t(1));
        },
        bytes + 4);
    FAIL() << "no fault";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("not at a multiple of 8 bytes"), std::string::npos);
  }
}

}  // namespace
}  // namespace tensorcraft::simt
