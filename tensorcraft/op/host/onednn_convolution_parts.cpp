// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn_convolution_parts.hpp"

#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

namespace tensorcraft::host::onednn {
namespace {

constexpr int64_t kFewestRows = 2, kFewestFilters = 32;  // of a slice, if it has not all of them

Cut cut_into(const Convolution& c, int64_t by_images, int64_t by_rows, int64_t by_filters) {
  Cut cut{};
  cut.images = div_ceil(c.batch, by_images);
  cut.rows = div_ceil(c.rows.out, by_rows);
  const int64_t unit = by_filters == 1 ? 1 : kFewestFilters;
  cut.filters = std::min(c.filters, round_up(div_ceil(c.filters, by_filters), unit));
  cut.by_images = div_ceil(c.batch, cut.images);
  cut.by_rows = div_ceil(c.rows.out, cut.rows);
  cut.by_filters = div_ceil(c.filters, cut.filters);
  return cut;
}

// When the last slice ends, in products: those that it computes, and what its reads and moves cost.
// The filters of a slice that the cache of a core cannot hold are read again for each image.
double cost_of(const Convolution& c, const Cut& cut, int64_t threads) {
  constexpr double kRead = 20, kMove = 60, kFloatsOfCache = 1 << 18;
  const Inputs lines = inputs_of(c.rows, cut.by_rows / 2 * cut.rows, cut.rows);
  const double places = double(cut.images * cut.rows * c.columns.out),
               x = double(cut.images * lines.size * c.columns.in * c.groups * c.channels),
               w = double(c.groups * cut.filters * inputs_of_filter(c));
  const bool moves_out = cut.by_filters > 1 && !are_planes(c.dtype, c.out_at, c.groups * c.filters);
  double slice = w * places + kRead * x;
  if (w > kFloatsOfCache) slice += kRead * w * double(cut.images);
  if (moves_out) slice += kMove * places * double(cut.filters);
  const double rounds = double(div_ceil(cut.count(), threads));
  if (cut.slices_have_own_filters()) return rounds * (slice + kRead * w);
  const double packing = 2 * kRead * w * double(cut.by_filters) / double(threads);
  return packing + rounds * (slice + kRead * w);
}

// As few as have enough to do.
int64_t useful_threads(const Convolution& c, int threads) {
  constexpr double kProductsOfThread = 1 << 18;
  const double products = double(c.batch * c.rows.out * c.columns.out) *
                          double(c.groups * c.filters * inputs_of_filter(c));
  return int64_t(std::clamp(products / kProductsOfThread, 1.0, double(threads)));
}

}  // namespace

int64_t inputs_of_filter(const Convolution& c) { return c.channels * c.rows.taps * c.columns.taps; }

Slice Cut::slice(const Convolution& c, int64_t i) const {
  const int64_t filter = i % by_filters * filters, row = i / by_filters % by_rows * rows;
  const int64_t image = i / (by_filters * by_rows) * images;
  return {image,  std::min(images, c.batch - image),    row, std::min(rows, c.rows.out - row),
          filter, std::min(filters, c.filters - filter)};
}

Cut cut_of(const Convolution& c, int threads) {
  const int64_t useful = useful_threads(c, threads);
  const auto pieces = [](int64_t slices, int64_t most) {
    return std::max<int64_t>(1, std::min(slices, most));
  };
  Cut best{};
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Cut& cut) {
    if (const double cost = cost_of(c, cut, useful); cost < least) best = cut, least = cost;
  };
  for (int64_t images = std::min(c.batch, useful); images >= 1; --images) {
    const int64_t most = images == c.batch ? pieces(useful / images, c.rows.out / kFewestRows) : 1;
    for (int64_t rows = 1; rows <= most; ++rows) {
      const Cut cut = cut_into(c, images, rows, 1);
      const int64_t left = useful / cut.count();
      consider(c.groups > 1 ? cut
                            : cut_into(c, images, rows, pieces(left, c.filters / kFewestFilters)));
    }
  }
  if (c.groups == 1)
    for (int64_t n = useful + 1; n <= c.filters / kFewestFilters; ++n)
      consider(cut_into(c, 1, 1, n));
  const bool moves = are_planes(c.dtype, c.out_at, c.groups * c.filters);
  return moves && best.slices_have_own_images() ? cut_into(c, c.batch, 1, 1) : best;
}

Inputs inputs_of(const WindowAxis& a, int64_t output, int64_t count) {
  const int64_t begin = a.first(output), end = a.at(output + count - 1, a.taps - 1) + 1;
  const int64_t first = std::clamp<int64_t>(begin, 0, a.in);
  return {first, std::clamp<int64_t>(end, 0, a.in) - first, std::max<int64_t>(0, -begin),
          std::max<int64_t>(0, end - a.in)};
}

bool are_planes(DType dtype, const ImageStrides& at, int64_t channels) {
  constexpr int64_t kFewestChannels = 16;
  return dtype == DType::float32 && at.column == 1 && at.channel > 1 && channels >= kFewestChannels;
}

ImageStrides channels_last(int64_t rows, int64_t columns, int64_t channels) {
  return {rows * columns * channels, columns * channels, channels, 1};
}

Spread spread_of_filter(const Convolution& c, int64_t unit) {
  const int64_t taps = c.rows.taps * c.columns.taps;
  const ImageStrides& at = c.w_at;
  if (at.channel == 1 && at.column == c.channels && at.row == c.columns.taps * c.channels)
    return {taps * c.channels, unit, 0};
  if (at.column == 1 && at.row == c.columns.taps && at.channel == taps)
    return {taps, c.channels * unit, unit};
  return {};
}

bool has_padding(const Convolution& c) {
  const auto pads = [](const WindowAxis& a) {
    return a.before > 0 || a.at(a.out - 1, a.taps - 1) >= a.in;
  };
  return pads(c.rows) || pads(c.columns);
}

bool has_finite_filters(const Convolution& c) {
  const int64_t lines = c.groups * c.filters * c.rows.taps * c.columns.taps;
  const bool as_it_is = c.dtype == DType::float32 && c.w_at.channel == 1;
  std::atomic<bool> all = true;
  for_each_row(lines, c.channels, [&](int64_t line) {
    const int64_t tap = line % c.columns.taps, row = line / c.columns.taps % c.rows.taps,
                  filter = line / (c.columns.taps * c.rows.taps);
    const void* from = moved(c.w, c.w_at.offset(filter, row, tap, 0), c.dtype);
    float* values = as_it_is ? nullptr : scratch(Slot::row_d, c.channels);
    if (values) load_row(values, from, c.dtype, c.w_at.channel, c.channels);
    if (!are_finite(values ? values : static_cast<const float*>(from), c.channels)) all = false;
  });
  return all;
}

void* moved(const void* from, int64_t elements, DType dtype) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(from) +
                                elements * int64_t(dtype_bytes(dtype)));
}

Convolution as_run(Convolution c) {
  const int64_t channels = c.groups * c.channels;
  if (are_planes(c.dtype, c.x_at, channels))
    c.x_at = channels_last(c.rows.in, c.columns.in, channels);
  return c;
}

void unpack_planes(const Convolution& c, const Slice& s, const float* from) {
  const int64_t filters = c.groups * s.filters;
  const bool is_one_line = c.out_at.row == c.columns.out;
  const int64_t lines = is_one_line ? 1 : s.rows, places = s.rows * c.columns.out / lines;
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t line = 0; line < lines; ++line, from += places * filters)
      transpose(
          static_cast<float*>(c.out) + c.out_at.offset(s.image + image, s.row + line, 0, s.filter),
          {filters, c.out_at.channel, 0}, from, filters, places, filters);
}

}  // namespace tensorcraft::host::onednn
