// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/occupancy.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error;

struct Row {
  const char* arch;
  BlockUse use;
  int blocks;
  double fraction;
  std::string_view limit;
};

// Worked by hand from the limits of the architectures in the CUDA programming guide.
const Row kRows[] = {
    {"sm_90a", {256, 64, 0}, 4, 0.5, "registers"},
    {"sm_90a", {256, 32, 0}, 8, 1.0, "registers"},
    {"sm_90a", {256, 16, 0}, 8, 1.0, "threads"},
    {"sm_90a", {32, 16, 0}, 32, 0.5, "blocks"},
    {"sm_86", {32, 16, 0}, 16, 16.0 / 48, "blocks"},
    {"sm_89", {32, 16, 0}, 24, 0.5, "blocks"},
    {"sm_120a", {512, 24, 0}, 3, 1.0, "threads"},
    // 33 registers are 1,056 a warp, given out as 1,280: 12 warps a partition.
    {"sm_90a", {128, 33, 0}, 12, 0.75, "registers"},
    // 255 registers: 8,192 a warp, 2 warps a partition; 3 warps leave 5 of 8 unused.
    {"sm_90a", {96, 255, 0}, 2, 6.0 / 64, "registers"},
    // 1,024 threads with more than 64 registers do not fit.
    {"sm_90a", {1024, 65, 0}, 0, 0.0, "registers"},
    {"sm_90a", {1024, 64, 0}, 1, 0.5, "registers"},
    {"sm_90a", {2048, 16, 0}, 0, 0.0, "registers"},
    // 228 KiB: the block's 113 KiB and the system's 1 KiB fit twice.
    {"sm_90a", {128, 32, 113 << 10}, 2, 0.125, "shared memory"},
    {"sm_90a", {128, 32, (113 << 10) + 1}, 1, 0.0625, "shared memory"},
    {"sm_90a", {128, 32, 227 << 10}, 1, 0.0625, "shared memory"},
    {"sm_90a", {128, 32, (227 << 10) + 1}, 0, 0.0, "shared memory"},
    {"sm_80", {128, 32, 48 << 10}, 3, 12.0 / 64, "shared memory"},
};

TEST(Occupancy, IsWhatTheLimitsOfTheArchitectureAllow) {
  for (const Row& row : kRows) {
    const Occupancy found = occupancy(device_info_of_arch(row.arch), row.use);
    const auto what = testing::Message()
                      << row.arch << ' ' << row.use.threads << " threads " << row.use.registers
                      << " registers " << row.use.shared_bytes << " bytes";
    EXPECT_EQ(found.blocks_per_sm, row.blocks) << what;
    EXPECT_DOUBLE_EQ(found.fraction, row.fraction) << what;
    EXPECT_EQ(found.limit, row.limit) << what;
  }
}

TEST(Occupancy, AKernelOfUnknownRegistersIsLimitedByTheRest) {
  EXPECT_EQ(occupancy(device_info_of_arch("sm_90a"), {256, 0, 0}).blocks_per_sm, 8);
}

TEST(Occupancy, NeedsAGpuAndThreads) {
  expect_error(
      ErrorKind::value, [] { occupancy(device_info(Device::cpu()), {256, 32, 0}); },
      "occupancy: cpu is no GPU");
  expect_error(
      ErrorKind::value, [] { occupancy(device_info_of_arch("sm_80"), {}); },
      "occupancy: a block has 1 thread or more, got 0");
}

}  // namespace
}  // namespace tensorcraft
