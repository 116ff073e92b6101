// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn_convolution.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/onednn.hpp"
#include "tensorcraft/op/host/parallel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tensorcraft::host {
namespace {

struct OneDnnConvolution : testing::Test {
  void SetUp() override {
    if (!onednn::available()) GTEST_SKIP() << onednn::unavailable_reason();
  }
  void TearDown() override { set_num_threads(0); }
};

struct Shape {
  int64_t batch, groups, channels, filters;
  WindowAxis rows, columns;
  bool channels_last = true, bias = true;
};
WindowAxis axis(int64_t in, int64_t taps, int64_t stride = 1, int64_t dilation = 1,
                int64_t before = 0, int64_t after = 0) {
  const int64_t out = (in + before + after - (taps - 1) * dilation - 1) / stride + 1;
  return {in, out, taps, stride, dilation, before};
}
ImageStrides strides_of(const Shape& s, int64_t rows, int64_t columns, int64_t channels) {
  if (s.channels_last) return {rows * columns * channels, columns * channels, channels, 1};
  return {rows * columns * channels, columns, 1, rows * columns};
}

// Random images and filters, and a result that holds NaN until it is written.
struct Data {
  Shape s;
  std::vector<float> x, w, bias, out;
  onednn::Convolution c;

  explicit Data(const Shape& shape) : s(shape) {
    const int64_t channels = s.groups * s.channels, filters = s.groups * s.filters;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& to, int64_t n) {
      to.resize(size_t(n));
      for (float& v : to) v = normal(random);
    };
    fill(x, s.batch * s.rows.in * s.columns.in * channels);
    fill(w, filters * s.rows.taps * s.columns.taps * s.channels);
    fill(bias, filters);
    out.assign(size_t(s.batch * s.rows.out * s.columns.out * filters), NAN);
    c = {.dtype = DType::float32,
         .batch = s.batch,
         .groups = s.groups,
         .channels = s.channels,
         .filters = s.filters,
         .rows = s.rows,
         .columns = s.columns,
         .x = x.data(),
         .w = w.data(),
         .bias = s.bias ? bias.data() : nullptr,
         .out = out.data(),
         .x_at = strides_of(s, s.rows.in, s.columns.in, channels),
         .w_at = strides_of(s, s.rows.taps, s.columns.taps, s.channels),
         .out_at = strides_of(s, s.rows.out, s.columns.out, filters)};
  }

  double expected(int64_t n, int64_t y, int64_t column, int64_t f) const {
    double sum = s.bias ? bias[size_t(f)] : 0;
    for (int64_t r = 0; r < s.rows.taps; ++r)
      for (int64_t t = 0; t < s.columns.taps; ++t)
        for (int64_t i = 0; i < s.channels; ++i) {
          const int64_t iy = s.rows.at(y, r), ix = s.columns.at(column, t);
          if (!s.rows.has(iy) || !s.columns.has(ix)) continue;
          const int64_t channel = f / s.filters * s.channels + i;
          sum += double(x[size_t(c.x_at.offset(n, iy, ix, channel))]) *
                 w[size_t(c.w_at.offset(f, r, t, i))];
        }
    return sum;
  }
  void check() const {
    const double bound = 1e-5 * std::sqrt(double(s.channels * s.rows.taps * s.columns.taps)) + 1e-5;
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t y = 0; y < s.rows.out; ++y)
        for (int64_t column = 0; column < s.columns.out; ++column)
          for (int64_t f = 0; f < s.groups * s.filters; ++f)
            ASSERT_NEAR(out[size_t(c.out_at.offset(n, y, column, f))], expected(n, y, column, f),
                        bound)
                << n << " " << y << " " << column << " " << f;
  }
};

void run(const Shape& s) {
  Data data(s);
  const char* reason = onednn::declines(data.c);
  ASSERT_EQ(reason, nullptr) << reason << ", image of " << s.rows.in << " rows";
  EXPECT_TRUE(onednn::convolve(data.c));
  data.check();
}

// Slices begin and end in the padding, within an image and among filters.
TEST_F(OneDnnConvolution, AgreesWithDoubleHoweverItIsCut) {
  for (const int threads : {1, 2, 3, 5, 16}) {
    set_num_threads(threads);
    for (const bool channels_last : {true, false}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, channels last: " << channels_last);
      run({2, 1, 16, 32, axis(19, 3, 1, 1, 1, 1), axis(17, 3, 1, 1, 1, 1), channels_last});
      run({1, 1, 64, 96, axis(7, 3, 1, 1, 1, 1), axis(7, 3, 1, 1, 1, 1), channels_last, false});
      run({7, 1, 32, 48, axis(12, 5, 2, 1, 2, 1), axis(11, 3, 2, 1, 0, 2), channels_last});
      run({3, 1, 3, 16, axis(33, 7, 2, 1, 3, 3), axis(31, 7, 2, 1, 3, 3), channels_last});
      run({1, 1, 32, 32, axis(20, 3, 1, 2, 2, 2), axis(20, 3, 1, 2, 2, 2), channels_last});
      run({2, 2, 16, 16, axis(12, 3, 1, 1, 1, 1), axis(12, 3, 1, 1, 1, 1), channels_last});
    }
  }
}

// Few pixels and many filters: each slice packs its own, more slices than threads.
TEST_F(OneDnnConvolution, AgreesWithDoubleWhereFiltersAreCut) {
  for (const int threads : {2, 3}) {
    set_num_threads(threads);
    for (const bool channels_last : {true, false}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, channels last: " << channels_last);
      run({1, 1, 288, 320, axis(3, 3, 1, 1, 1, 1), axis(5, 3, 1, 1, 1, 1), channels_last});
      run({2, 1, 512, 136, axis(3, 3, 1, 1, 1, 1), axis(2, 3, 1, 1, 1, 1), channels_last});
    }
  }
}

// An infinite weight beside padding makes NaN, of which oneDNN knows nothing.
TEST_F(OneDnnConvolution, LeavesWeightsThatAreNotFiniteToOthersIfThereIsPadding) {
  for (const int threads : {1, 2, 16})
    for (const bool channels_last : {true, false})
      for (const int64_t filters : {32, 40, 320})
        for (const int64_t padding : {0, 1}) {
          set_num_threads(threads);
          Data data({1, 1, 64, filters, axis(6, 3, 1, 1, padding, padding),
                     axis(6, 3, 1, 1, padding, padding), channels_last});
          for (const size_t place : {size_t(0), data.w.size() / 2, data.w.size() - 1}) {
            const float before = data.w[place];
            data.w[place] = place == 0 ? NAN : INFINITY;
            EXPECT_EQ(onednn::convolve(data.c), padding == 0) << place;
            data.w[place] = before;
          }
          EXPECT_TRUE(onednn::convolve(data.c));
          data.check();
        }
}

// Lines of images may have gaps, which no thread touches.
TEST_F(OneDnnConvolution, TakesPlanesWithGaps) {
  set_num_threads(2);
  Data data({2, 1, 32, 64, axis(9, 3, 1, 1, 1, 1), axis(13, 3, 1, 1, 1, 1), false});
  const auto spread = [](std::vector<float>& all, ImageStrides& at, int64_t channels, int64_t rows,
                         int64_t columns) {
    std::vector<float> to(size_t(2 * channels * rows * (columns + 3)), NAN);
    const ImageStrides wide{channels * rows * (columns + 3), columns + 3, 1, rows * (columns + 3)};
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x)
          for (int64_t c = 0; c < channels; ++c)
            to[size_t(wide.offset(n, y, x, c))] = all[size_t(at.offset(n, y, x, c))];
    all = to, at = wide;
  };
  spread(data.x, data.c.x_at, 32, 9, 13);
  spread(data.out, data.c.out_at, 64, 9, 13);
  data.c.x = data.x.data(), data.c.out = data.out.data();
  ASSERT_TRUE(onednn::convolve(data.c));
  data.check();
  for (size_t i = 0; i < data.out.size(); ++i)
    EXPECT_EQ(std::isnan(data.out[i]), i % 16 >= 13) << i;
}

TEST_F(OneDnnConvolution, SaysWhyItDeclines) {
  const Shape plain{1, 1, 16, 16, axis(8, 3), axis(8, 3)};
  Data empty(plain), integers(plain), backwards(plain);
  empty.c.batch = 0;
  EXPECT_STREQ(onednn::declines(empty.c), "an extent is 0");
  integers.c.dtype = DType::int64;
  EXPECT_STREQ(onednn::declines(integers.c), "the dtype");
  backwards.c.x_at.row = -backwards.c.x_at.row;
  EXPECT_STREQ(onednn::declines(backwards.c), "the strides");
  EXPECT_THROW(onednn::convolve(backwards.c), Error);
}

}  // namespace
}  // namespace tensorcraft::host
