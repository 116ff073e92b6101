// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/tensor_map.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace tensorcraft::cuda {
namespace {

using test::FakeDriver;
using test::FakeGpu;

static_assert(sizeof(TensorMap) == 128 && alignof(TensorMap) == 64);

alignas(256) unsigned char memory[256];

// 64 rows of 64 bf16 in boxes of 32 x 64: everything the rules allow.
TiledTensor good() {
  return {.dtype = DType::bfloat16,
          .address = memory,
          .rank = 2,
          .dims = {64, 64},
          .strides = {128},
          .box = {64, 32},
          .swizzle = Swizzle::bytes_128};
}

bool bit_21_is_set(const TensorMap& map) {
  uint64_t word = 0;
  std::memcpy(&word, map.bytes + 8, 8);
  return (word >> 21) & 1;
}

TEST(TensorMap, EncodesAValidTensor) {
  FakeDriver fake;
  EXPECT_NO_THROW(encode_tiled(good()));
  EXPECT_EQ(fake.last_tensor_map_strides[0], 128u);
}

TEST(TensorMap, RefusesABrokenRuleBeforeTheDriverIsAsked) {
  FakeDriver fake;
  TiledTensor tensor = good();
  tensor.box[1] = 257;
  EXPECT_THROW(encode_tiled(tensor), Error);
  EXPECT_EQ(fake.calls["cuTensorMapEncodeTiled"], 0);
}

TEST(TensorMap, EncodesWindowsWithTheirCornersFromColumnsOn) {
  FakeDriver fake;
  Im2colTensor windows{.images = good(), .lower = {-1, -2}, .upper = {-3, -4}};
  windows.images.rank = 4;
  windows.images.dims = {64, 9, 8, 2};
  windows.images.strides = {128, 1152, 9216};
  EXPECT_TRUE(bit_21_is_set(encode_im2col(windows)));  // small, but no box
  EXPECT_EQ(fake.last_tensor_map_strides[2], 9216u);
  EXPECT_EQ(fake.last_corners[0][1], -2);
  EXPECT_EQ(fake.last_corners[1][0], -3);
  windows.lower[1] = -129;
  EXPECT_THROW(encode_im2col(windows), Error);
  EXPECT_EQ(fake.calls["cuTensorMapEncodeIm2col"], 1);
}

TEST(TensorMap, ClearsTheSmallTensorBitOnOldDriversBelow128KiB) {
  TiledTensor tensor = good();
  tensor.dims = {64, 1023};  // 130,944 bytes
  {
    FakeDriver fake({FakeGpu{}}, 13010);
    EXPECT_FALSE(bit_21_is_set(encode_tiled(tensor)));
    tensor.dims[1] = 1024;  // exactly 131,072
    EXPECT_TRUE(bit_21_is_set(encode_tiled(tensor)));
  }
  FakeDriver fake({FakeGpu{}}, 13020);
  EXPECT_TRUE(bit_21_is_set(encode_tiled(good())));
}

}  // namespace
}  // namespace tensorcraft::cuda
