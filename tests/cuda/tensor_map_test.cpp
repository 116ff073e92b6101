// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/tensor_map.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

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

TEST(TensorMap, RefusesEveryBrokenRuleBeforeTheDriverIsAsked) {
  const std::pair<const char*, std::function<void(TiledTensor&)>> cases[] = {
      {"rank must be in [1, 5], got 0", [](auto& t) { t.rank = 0; }},
      {"rank must be in [1, 5], got 6", [](auto& t) { t.rank = 6; }},
      {"address must be a multiple of 16", [](auto& t) { t.address = memory + 8; }},
      {"address must be a multiple of 16", [](auto& t) { t.address = nullptr; }},
      {"dimension 1 must be in [1, 2^32], got 0", [](auto& t) { t.dims[1] = 0; }},
      {"dimension 0 must be in [1, 2^32]", [](auto& t) { t.dims[0] = (uint64_t(1) << 32) + 1; }},
      {"stride of dimension 1 must be a multiple of 16", [](auto& t) { t.strides[0] = 130; }},
      {"below 2^40", [](auto& t) { t.strides[0] = uint64_t(1) << 40; }},
      {"box size 1 must be in [1, 256], got 257", [](auto& t) { t.box[1] = 257; }},
      {"box size 0 must be in [1, 256], got 0", [](auto& t) { t.box[0] = 0; }},
      {"inner box must be a multiple of 16 bytes, got 4", [](auto& t) { t.box[0] = 2; }},
      {"inner box must be at most 64 bytes", [](auto& t) { t.swizzle = Swizzle::bytes_64; }},
      {"element stride 1 must be in [1, 8], got 9", [](auto& t) { t.element_strides[1] = 9; }},
      {"NaN fill needs a floating dtype, got int16",
       [](auto& t) {
         t.dtype = DType::int16;
         t.nan_fill = true;
       }},
  };
  FakeDriver fake;
  for (const auto& [text, spoil] : cases) {
    TiledTensor tensor = good();
    spoil(tensor);
    try {
      encode_tiled(tensor);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(fake.calls["cuTensorMapEncodeTiled"], 0);
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
