// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_map.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::simt {
namespace {

TEST(SimtTensorMap, KeepsEverythingACopyNeeds) {
  alignas(16) static char memory[16];
  const TiledTensor t{.dtype = DType::bfloat16,
                      .address = memory,
                      .rank = 5,
                      .dims = {uint64_t(1) << 32, 2, 3, 4, 5},
                      .strides = {(uint64_t(1) << 40) - 16, 32, 48, 64},
                      .box = {32, 256, 1, 4, 5},
                      .element_strides = {1, 2, 3, 4, 8},
                      .swizzle = TiledTensor::Swizzle::bytes_64,
                      .nan_fill = true};
  const auto back = decode_tiled(encode_tiled(t));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->dtype, t.dtype);
  EXPECT_EQ(back->address, t.address);
  EXPECT_EQ(back->rank, t.rank);
  EXPECT_EQ(back->dims, t.dims);
  EXPECT_EQ(back->strides, t.strides);
  EXPECT_EQ(back->box, t.box);
  EXPECT_EQ(back->element_strides, t.element_strides);
  EXPECT_EQ(back->swizzle, t.swizzle);
  EXPECT_EQ(back->nan_fill, t.nan_fill);
  EXPECT_FALSE(back->rounds_to_tf32);
  EXPECT_FALSE(decode_tiled(TensorMap{}));
}

TEST(SimtTensorMap, KeepsTheCornersOfWindows) {
  alignas(16) static char memory[16];
  const Im2colTensor t{.images = {.dtype = DType::float16,
                                  .address = memory,
                                  .rank = 3,
                                  .dims = {8, 100000, 3},
                                  .strides = {16, 1600000},
                                  .box = {8, 1024},
                                  .element_strides = {1, 7, 1, 1, 1}},
                       .lower = {-32768},
                       .upper = {32767}};
  const TensorMap map = encode_im2col(t);
  const auto back = decode_im2col(map);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->lower, t.lower);
  EXPECT_EQ(back->upper, t.upper);
  EXPECT_EQ(back->images.dims, t.images.dims);
  EXPECT_EQ(back->images.box, t.images.box);
  EXPECT_EQ(back->images.element_strides, t.images.element_strides);
  EXPECT_FALSE(decode_tiled(map));
  EXPECT_FALSE(decode_im2col(TensorMap{}));
  EXPECT_THROW(encode_im2col({}), Error);
}

TEST(SimtTensorMap, RefusesWhatTheDriverWould) {
  EXPECT_THROW(encode_tiled({.rank = 6}), Error);
  EXPECT_THROW(encode_tiled({.rank = 1, .dims = {16}, .box = {16}}), Error);  // no address
}

}  // namespace
}  // namespace tensorcraft::simt
