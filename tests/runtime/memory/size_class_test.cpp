// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/size_class.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tensorcraft::memory {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

TEST(SizeClass, RoundsAsTheTableSays) {
  const struct {
    size_t bytes, rounded;
  } rows[] = {
      {0, 0},
      {1, 256},
      {256, 256},
      {257, 512},
      {2 * kKiB, 2 * kKiB},
      {2 * kKiB + 1, 2 * kKiB + 256},
      {4 * kKiB, 4 * kKiB},
      {4 * kKiB + 1, 4 * kKiB + 512},
      {7 * kKiB + 1, 7 * kKiB + 512},
      {8 * kKiB + 1, 9 * kKiB},
      {kMiB + 1, kMiB + 128 * kKiB},
      {256 * kMiB, 256 * kMiB},
      {256 * kMiB + 1, 257 * kMiB},
      {257 * kMiB + 1, 258 * kMiB},
      {kMaxBytes, kMaxBytes},
      {kMaxBytes + 1, 0},
      {std::numeric_limits<size_t>::max(), 0},
  };
  for (const auto& row : rows) EXPECT_EQ(class_bytes(row.bytes), row.rounded) << row.bytes;
}

template <class Check>
void for_sizes(const Check& check) {
  for (size_t bytes = 1; bytes <= 70 * kKiB; ++bytes) check(bytes);
  for (size_t bytes = 64 * kKiB; bytes < kMaxBytes; bytes += bytes / 97)
    for (const size_t size : {bytes - 1, bytes, bytes + 1}) check(size);
}

TEST(SizeClass, IsTheLeastOfItsKindAndFitsItself) {
  for_sizes([](size_t bytes) {
    const size_t rounded = class_bytes(bytes);
    ASSERT_GE(rounded, bytes);
    ASSERT_EQ(rounded % kGranule, 0u);
    ASSERT_EQ(class_bytes(rounded), rounded);
    ASSERT_GE(class_bytes(bytes + 1), rounded);
  });
}

// A class that is the least size of its bin makes every block of the bin fit.
TEST(SizeClass, EveryClassBeginsABin) {
  int last = -1;
  for_sizes([&](size_t bytes) {
    const size_t rounded = class_bytes(bytes);
    const int bin = bin_of(rounded);
    ASSERT_GE(bin, 0);
    ASSERT_LT(bin, kBins);
    ASSERT_LE(least_of_bin(bin), rounded);
    if (rounded <= 256 * kMiB) {
      ASSERT_EQ(least_of_bin(bin), rounded);
    }
  });
  for (int bin = 0; bin < kBins; ++bin) {
    ASSERT_EQ(bin_of(least_of_bin(bin)), bin);
    ASSERT_GT(bin, last);
    last = bin;
    if (bin + 1 < kBins) {
      ASSERT_EQ(bin_of(least_of_bin(bin + 1) - kGranule), bin);
    }
  }
  EXPECT_EQ(bin_of(kMaxBytes), kBins - 8);
}

TEST(SizeClass, r06_size_class_waste) {
  for_sizes([](size_t bytes) {
    const double waste = double(class_bytes(bytes) - bytes) / double(bytes);
    const double most = bytes > 4 * kKiB ? 0.125 : bytes > kKiB ? 0.25 : 255;
    ASSERT_LE(waste, most) << bytes;
  });
}

}  // namespace
}  // namespace tensorcraft::memory
