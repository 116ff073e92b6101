// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/window.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace tensorcraft::op {
namespace {

ImagePadding padding_of(const Value& v) { return to_padding("f", "padding", v); }

Window over(const Dims& shape, std::array<int64_t, 2> taps, const ImagePadding& padding,
            const Dims& stride = {1}, const Dims& dilation = {1}) {
  return window_over("f", TensorView(nullptr, DType::float32, shape), taps,
                     {stride, padding, dilation});
}

TEST(Window, PaddingIsWrittenInFourWays) {
  EXPECT_EQ(padding_of(int64_t(3)).bottom, 3);
  EXPECT_EQ(padding_of(Dims{1, 2}).top, 1);
  EXPECT_EQ(padding_of(Dims{1, 2}).right, 2);
  const ImagePadding sides = padding_of(std::vector<Dims>{{1, 2}, {3, 4}});
  EXPECT_EQ((std::vector<int64_t>{sides.top, sides.bottom, sides.left, sides.right}),
            (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(padding_of(std::string_view("same")).same);
  test::expect_error_with(ErrorKind::value, "got \"valid\"",
                          [] { padding_of(std::string_view("valid")); });
  test::expect_error_with(ErrorKind::type, "got a float", [] { padding_of(0.5); });
  test::expect_error_with(ErrorKind::type, "got a list of lists",
                          [] { padding_of(std::vector<Dims>{{1, 2}}); });
}

TEST(Window, SizesOfTheResultAreThoseOfWholeWindows) {
  const Window w = over({1, 7, 8, 1}, {3, 2}, ImagePadding(1, 0), {2, 3}, {1, 4});
  EXPECT_EQ(w.rows.out, 4);
  EXPECT_EQ(w.columns.out, 2);
  EXPECT_EQ(w.rows.at(0, 0), -1);
  EXPECT_EQ(w.columns.at(1, 1), 7);
  EXPECT_EQ(over({1, 3, 5, 1}, {3, 5}, {}).rows.out, 1);
}

TEST(Window, SameIsTheSizeOverTheStrideRoundedUp) {
  for (const int64_t size : {1, 2, 5, 8})
    for (const int64_t stride : {1, 2, 3, 9}) {
      const Window w = over({1, size, size, 1}, {3, 3}, ImagePadding::same_size(), {stride}, {2});
      EXPECT_EQ(w.rows.out, (size + stride - 1) / stride) << size << " by " << stride;
    }
}

TEST(Window, LayoutsAreViewsOfOneMemory) {
  float memory[24] = {};
  const TensorView nchw(memory, DType::float32, {1, 2, 3, 4});
  const TensorView seen = as_nhwc("f", "x", nchw, ImageLayout::nchw);
  EXPECT_EQ(seen.shape(), (Dims{1, 3, 4, 2}));
  EXPECT_EQ(image_strides(seen).channel, 12);
  EXPECT_EQ(as_nhwc("f", "x", nchw, ImageLayout::nhwc).shape(), nchw.shape());
  EXPECT_EQ(shape_in(ImageLayout::nchw, 1, 2, 3, 4), (Dims{1, 4, 2, 3}));
}

}  // namespace
}  // namespace tensorcraft::op
