// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/memory_check.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/support/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tensorcraft::memory {
namespace {

using test::SimulatedDevice;
const StreamRef kA = SimulatedDevice::stream(1);

struct Rig {
  explicit Rig(size_t quarantine = 4)
      : pool(device.handle(), {.checks = {.enabled = true, .quarantine = quarantine}}) {}
  SimulatedDevice device;
  MemoryPool pool;
  // Returns what free() says; empty if nothing.
  std::string free(const Block& block) {
    try {
      pool.free(block.data, kA);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
};

std::string text(const Block& block, const char* what, const char* where) {
  return join("free: the block of ", block.bytes, " bytes at ", block.data,
              " on the simulated device was written to ", what, ": ", where);
}

TEST(MemoryCheck, NamesAWriteBesideABlock) {
  for (const long at : {-256l, -1l, 1000l, 1255l}) {
    Rig rig;
    const Block block = rig.pool.allocate(1000, kA);
    rig.device.run(kA);
    static_cast<unsigned char*>(block.data)[at] = 1;
    const std::string said = rig.free(block);
    const std::string offset = join("1 bytes, the first at offset ", at < 0 ? at + 256 : at - 1000);
    EXPECT_EQ(said.find(text(block, at < 0 ? "before its begin" : "after its end", offset.c_str())),
              0u)
        << said;
    EXPECT_NE(said.find("\n  allocated at\n"), std::string::npos);
    EXPECT_NE(said.find("\n  freed at\n"), std::string::npos);
    EXPECT_EQ(rig.pool.statistics().live_blocks, 0);
    EXPECT_EQ(test::wrong_sums(rig.pool.statistics()), "");
  }
}

TEST(MemoryCheck, NamesAWriteAfterTheFree) {
  Rig rig(2);
  const Block block = rig.pool.allocate(1000, kA);
  EXPECT_EQ(rig.free(block), "");
  rig.device.run(kA);
  static_cast<unsigned char*>(block.data)[77] = 1;
  EXPECT_EQ(rig.free(rig.pool.allocate(10, kA)), "");
  const std::string said = rig.free(rig.pool.allocate(10, kA));
  EXPECT_EQ(said.find(text(block, "after it was freed", "1 bytes, the first at offset 77")), 0u)
      << said;
}

TEST(MemoryCheck, NamesASecondFreeWithBothStacks) {
  Rig rig;
  const Block block = rig.pool.allocate(1000, kA);
  EXPECT_EQ(rig.free(block), "");
  const std::string said = rig.free(block);
  EXPECT_EQ(said.find(join("free: ", block.data, " was freed before\n  allocated at\n")), 0u);
  EXPECT_NE(said.find("\n  freed at\n"), std::string::npos);
}

TEST(MemoryCheck, MemoryIsNaNBeforeItIsWrittenAndAfterItIsFreed) {
  Rig rig;
  const Block block = rig.pool.allocate(1000, kA);
  rig.device.run(kA);
  const auto* const values = static_cast<float*>(block.data);
  for (int i = 0; i < 250; ++i) ASSERT_TRUE(std::isnan(values[i]));
  *static_cast<float*>(block.data) = 1;
  EXPECT_EQ(rig.free(block), "");
  rig.device.run(kA);
  EXPECT_TRUE(std::isnan(values[0]));
}

TEST(MemoryCheck, KeepsFreedBlocksBackUntilMemoryIsShort) {
  Rig rig(3);
  const Block first = rig.pool.allocate(1000, kA);
  rig.free(first);
  for (int i = 0; i < 3; ++i) {
    const Block other = rig.pool.allocate(1000, kA);
    EXPECT_NE(other.data, first.data);
    rig.free(other);
  }
  EXPECT_EQ(rig.pool.allocate(1000, kA).data, first.data);
  rig.pool.trim();
  EXPECT_EQ(rig.pool.statistics().captured, 0);
}

TEST(MemoryCheck, ARightProgramIsNotReported) {
  Rig rig(3);
  for (size_t bytes = 1; bytes < 5000; bytes += 37) {
    const Block block = rig.pool.allocate(bytes, kA);
    rig.device.run(kA);
    std::memset(block.data, 5, bytes);
    ASSERT_EQ(rig.free(block), "") << bytes;
    ASSERT_EQ(test::wrong_sums(rig.pool.statistics()), "");
  }
}

}  // namespace
}  // namespace tensorcraft::memory
