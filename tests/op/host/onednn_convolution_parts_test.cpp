// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn_convolution_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tensorcraft::host::onednn {
namespace {

WindowAxis same(int64_t in, int64_t taps, int64_t stride = 1) {
  return {in, (in - 1) / stride + 1, taps, stride, 1, taps / 2};
}
Convolution convolution(int64_t batch, int64_t side, int64_t channels, int64_t filters,
                        int64_t taps, int64_t groups = 1) {
  const WindowAxis axis = same(side, taps);
  return {.dtype = DType::float32,
          .batch = batch,
          .groups = groups,
          .channels = channels,
          .filters = filters,
          .rows = axis,
          .columns = axis,
          .x_at = channels_last(side, side, groups * channels),
          .w_at = channels_last(taps, taps, channels),
          .out_at = channels_last(side, side, groups * filters)};
}

TEST(OneDnnCut, CoversEachOutputOnce) {
  for (const auto& c : {convolution(1, 14, 256, 256, 3), convolution(8, 7, 512, 512, 3),
                        convolution(1, 1, 3, 1, 1), convolution(5, 13, 16, 100, 3),
                        convolution(3, 9, 64, 72, 3, 2), convolution(1, 56, 64, 40, 3)})
    for (const int threads : {1, 2, 3, 7, 16, 64}) {
      const Cut cut = cut_of(c, threads);
      std::vector<int> times(size_t(c.batch * c.rows.out * c.filters));
      for (int64_t i = 0; i < cut.count(); ++i) {
        const Slice s = cut.slice(c, i);
        EXPECT_GT(s.images * s.rows * s.filters, 0);
        EXPECT_TRUE(s.images == 1 || s.rows == c.rows.out);
        EXPECT_TRUE(c.groups == 1 || s.filters == c.filters);
        EXPECT_LE(s.filters, cut.slice(c, 0).filters) << "the first piece is the largest";
        for (int64_t image = s.image; image < s.image + s.images; ++image)
          for (int64_t row = s.row; row < s.row + s.rows; ++row)
            for (int64_t f = s.filter; f < s.filter + s.filters; ++f)
              ++times[size_t((image * c.rows.out + row) * c.filters + f)];
      }
      EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }))
          << threads << " threads, " << c.rows.in << " rows, " << c.filters << " filters";
      EXPECT_TRUE(cut.count() <= threads || cut.slices_have_own_filters() ||
                  cut.slices_have_own_images());
    }
}

TEST(OneDnnCut, GivesEachThreadWorkThatIsWorthIt) {
  EXPECT_EQ(cut_of(convolution(1, 4, 16, 16, 1), 16).count(), 1);  // not worth a second thread
  EXPECT_EQ(cut_of(convolution(1, 14, 256, 256, 3), 16).count(), 16);
  EXPECT_EQ(cut_of(convolution(8, 56, 64, 64, 3), 16).count(), 16);
  // Far more weights than pixels: each thread reads and packs its own.
  const Cut deep = cut_of(convolution(1, 7, 512, 512, 3), 2);
  EXPECT_TRUE(deep.slices_have_own_filters());
  EXPECT_GE(deep.count(), 2);
  Convolution planes = convolution(8, 56, 64, 64, 3);
  planes.out_at = {64 * 56 * 56, 56, 1, 56 * 56};
  EXPECT_EQ(cut_of(planes, 2).count(), 8) << "an image at a time";
}

TEST(OneDnnConvolutionParts, KnowsTheOrdersOfFilters) {
  Convolution c = convolution(1, 8, 6, 16, 3);
  const Spread last = spread_of_filter(c, 32);
  EXPECT_EQ(last.at(2 * 6 + 5), (2 * 6 + 5) * 32);  // tap 2, channel 5
  c.w_at = {6 * 9, 3, 1, 9};
  EXPECT_EQ(spread_of_filter(c, 32).at(5 * 9 + 2), (2 * 6 + 5) * 32);
  c.w_at.row = 4;
  EXPECT_EQ(spread_of_filter(c, 32).run, 0);
}

TEST(OneDnnConvolutionParts, FindsTheFilterThatIsNotFinite) {
  Convolution c = convolution(1, 8, 5, 7, 3);
  std::vector<float> w(7 * 9 * 5, std::numeric_limits<float>::max());
  c.w = w.data();
  for (const bool channels_last : {true, false}) {
    if (!channels_last) c.w_at = {5 * 9, 3, 1, 9};
    EXPECT_TRUE(has_finite_filters(c));
    for (float& element : w) {
      const float before = element;
      element = -std::numeric_limits<float>::infinity();
      ASSERT_FALSE(has_finite_filters(c));
      element = before;
    }
  }
}

}  // namespace
}  // namespace tensorcraft::host::onednn
