// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/im2col_tensor.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace tensorcraft {
namespace {

alignas(256) unsigned char memory[256];

// Two images of 64 channels, 28 x 14 pixels, under windows of 3 x 3 taps with padding 1, stride 2:
// everything the rules allow.
Im2colTensor good() {
  return {.images = {.dtype = DType::bfloat16,
                     .address = memory,
                     .rank = 4,
                     .dims = {64, 28, 14, 2},
                     .strides = {128, 3584, 50176},
                     .box = {64, 1024},
                     .element_strides = {1, 2, 2, 1, 1},
                     .swizzle = TiledTensor::Swizzle::bytes_128},
          .lower = {-1, -1},
          .upper = {-1, -1}};
}

TEST(Im2colTensor, CountsWindowsAlongEachAxis) {
  EXPECT_NO_THROW(check_im2col(good()));
  EXPECT_EQ(good().num_windows(0), 14);
  EXPECT_EQ(good().num_windows(1), 7);
  EXPECT_EQ(im2col_offset_end(1), 65536);
  EXPECT_EQ(im2col_offset_end(2), 256);
  EXPECT_EQ(im2col_offset_end(3), 32);
}

TEST(Im2colTensor, RefusesEveryBrokenRule) {
  const std::pair<const char*, std::function<void(Im2colTensor&)>> cases[] = {
      {"rank must be in [3, 5], got 2", [](auto& t) { t.images.rank = 2; }},
      {"places of a copy must be in [1, 1024], got 1025", [](auto& t) { t.images.box[1] = 1025; }},
      {"places of a copy must be in [1, 1024], got 0", [](auto& t) { t.images.box[1] = 0; }},
      {"element stride 1 must be in [1, 8], got 9",
       [](auto& t) { t.images.element_strides[1] = 9; }},
      {"must be a multiple of 16 bytes", [](auto& t) { t.images.strides[0] = 120; }},
      {"corner 1 must be in [-128, 128), got -129", [](auto& t) { t.lower[1] = -129; }},
      {"corner 0 must be in [-128, 128), got 128", [](auto& t) { t.upper[0] = 128; }},
      {"axis 1 has no window: the first is at -1, the last at -2",
       [](auto& t) { t.upper[1] = -15; }},
  };
  for (const auto& [text, spoil] : cases) {
    Im2colTensor tensor = good();
    spoil(tensor);
    test::expect_error_with(ErrorKind::value, text, [&] { check_im2col(tensor); });
  }
}

}  // namespace
}  // namespace tensorcraft
