// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/bulk.hpp"

#include "tensorcraft/device/float16.cuh"

#include <gtest/gtest.h>

#include <limits>

namespace tensorcraft::simt {
namespace {

template <class T>
T reduced(Reduce op, ReduceType type, T a, T b) {
  EXPECT_TRUE(can_reduce(op, type));
  reduce(op, type, &a, &b, sizeof(T));
  return a;
}

TEST(SimtBulkReduce, CombinesIntegers) {
  EXPECT_EQ(reduced(Reduce::add, ReduceType::u32, 0xffffffffu, 3u), 2u);
  EXPECT_EQ(reduced(Reduce::min, ReduceType::s32, -3, 5), -3);
  EXPECT_EQ(reduced(Reduce::max, ReduceType::u32, uint32_t(-3), 5u), uint32_t(-3));
  EXPECT_EQ(reduced(Reduce::inc, ReduceType::u32, 7u, 7u), 0u);
  EXPECT_EQ(reduced(Reduce::inc, ReduceType::u32, 6u, 7u), 7u);
  EXPECT_EQ(reduced(Reduce::dec, ReduceType::u32, 0u, 7u), 7u);
  EXPECT_EQ(reduced(Reduce::dec, ReduceType::u32, 9u, 7u), 7u);
  EXPECT_EQ(reduced(Reduce::dec, ReduceType::u32, 5u, 7u), 4u);
  EXPECT_EQ(reduced(Reduce::bit_xor, ReduceType::b32, 12u, 10u), 6u);
  EXPECT_EQ(reduced(Reduce::add, ReduceType::u64, ~uint64_t(0), uint64_t(2)), 1u);
}

TEST(SimtBulkReduce, RoundsEachHalfToNearestEven) {
  EXPECT_EQ(float(reduced(Reduce::add, ReduceType::bf16, bf16(256), bf16(1))), 256.0f);
  EXPECT_EQ(float(reduced(Reduce::add, ReduceType::bf16, bf16(256), bf16(3))), 260.0f);
  EXPECT_EQ(float(reduced(Reduce::max, ReduceType::f16, f16(-1), f16(0.5f))), 0.5f);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(float(reduced(Reduce::min, ReduceType::f16, f16(nan), f16(2))), 2.0f);
  EXPECT_EQ(reduced(Reduce::add, ReduceType::f32, 1.5f, 2.0f), 3.5f);
}

TEST(SimtBulkReduce, KeepsSubnormalsAndOrdersZeros) {
  constexpr float subnormal = 0x1p-130f, normal = 0x1p-126f;
  EXPECT_EQ(reduced(Reduce::add, ReduceType::f32, subnormal, 0.0f), subnormal);
  EXPECT_EQ(reduced(Reduce::add, ReduceType::f32, -1.5f * normal, normal), -0.5f * normal);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bit_cast<uint32_t>(reduced(Reduce::add, ReduceType::f32, infinity, -infinity)),
            0x7fffffffu);
  EXPECT_EQ(reduced(Reduce::min, ReduceType::f16, f16(0.0f), f16(-0.0f)).bits, 0x8000u);
  EXPECT_EQ(reduced(Reduce::max, ReduceType::bf16, bf16(-0.0f), bf16(0.0f)).bits, 0u);
}

TEST(SimtBulkReduce, HasNoFloatMinimumOfFourBytesAndNoBitsOfSignedIntegers) {
  EXPECT_FALSE(can_reduce(Reduce::min, ReduceType::f32));
  EXPECT_FALSE(can_reduce(Reduce::bit_and, ReduceType::f16));
  EXPECT_FALSE(can_reduce(Reduce::inc, ReduceType::s32));
}

}  // namespace
}  // namespace tensorcraft::simt
