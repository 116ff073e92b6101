// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tiled_tensor.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace tensorcraft {
namespace {

alignas(256) unsigned char memory[256];

// 64 rows of 64 bf16 in boxes of 32 x 64: everything the rules allow.
TiledTensor good() {
  return {.dtype = DType::bfloat16,
          .address = memory,
          .rank = 2,
          .dims = {64, 64},
          .strides = {128},
          .box = {64, 32},
          .swizzle = TiledTensor::Swizzle::bytes_128};
}

TEST(TiledTensor, RefusesEveryBrokenRule) {
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
      {"inner box must be at most 64 bytes",
       [](auto& t) { t.swizzle = TiledTensor::Swizzle::bytes_64; }},
      {"element stride 1 must be in [1, 8], got 9", [](auto& t) { t.element_strides[1] = 9; }},
      {"NaN fill needs a floating dtype, got int16",
       [](auto& t) {
         t.dtype = DType::int16;
         t.nan_fill = true;
       }},
      {"only float32 is rounded to tf32, got bfloat16",
       [](auto& t) {
         t.dtype = DType::bfloat16;
         t.rounds_to_tf32 = true;
       }},
  };
  for (const auto& [text, spoil] : cases) {
    TiledTensor tensor = good();
    spoil(tensor);
    try {
      check_tiled(tensor);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::value);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(check_tiled(good()));
}

}  // namespace
}  // namespace tensorcraft
