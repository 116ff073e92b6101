// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/window.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace tensorcraft::op {
namespace {

// Sizes and steps up to here leave 64 bits enough for a place times a step.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

int64_t span_of(int64_t taps, int64_t dilation) { return (taps - 1) * dilation + 1; }

struct Sides {
  int64_t before, after;
};

Sides same_sides(int64_t in, int64_t span, int64_t stride) {
  const int64_t out = div_ceil(in, stride);
  const int64_t all = std::max<int64_t>(0, (out - 1) * stride + span - in);
  return {all / 2, all - all / 2};
}

// `axis` names it for messages.
WindowAxis axis_over(std::string_view op, std::string_view axis, int64_t in, int64_t taps,
                     int64_t stride, int64_t dilation, Sides sides, bool same) {
  if (taps < 1) fail(ErrorKind::value, op, ": the window must have at least 1 of ", axis);
  if (in > kMost || taps > kMost)
    fail(ErrorKind::value, op, ": the shape is too large: at most 2^31 - 1 ", axis,
         " are supported, got ", std::max(in, taps));
  const int64_t span = span_of(taps, dilation);
  if (same) sides = same_sides(in, span, stride);
  for (const int64_t side : {sides.before, sides.after})
    if (side < 0 || side > kMost)
      fail(ErrorKind::value, op, ": padding must be from 0 to 2^31 - 1, got ", side);
  const int64_t padded = in + sides.before + sides.after;
  if (span > padded)
    fail(ErrorKind::value, op, ": the window covers ", span, " ", axis, " (", taps,
         " taps, dilation ", dilation, "), but the padded image has ", padded, " (", in, " and ",
         sides.before, " + ", sides.after, " of padding); give more padding or a smaller window");
  return {in, (padded - span) / stride + 1, taps, stride, dilation, sides.before};
}

}  // namespace

std::array<int64_t, 2> to_pair(std::string_view op, std::string_view name, const Dims& given) {
  if (given.rank() != 1 && given.rank() != 2)
    fail(ErrorKind::type, op, ": ", name, " must be an int or a pair of ints, got ", given.rank(),
         " ints");
  for (const int64_t x : given)
    if (x < 1 || x > kMost)
      fail(ErrorKind::value, op, ": ", name, " must be from 1 to 2^31 - 1, got ", x);
  return {given[0], given[given.rank() - 1]};
}

Window window_over(std::string_view op, const TensorView& x, std::array<int64_t, 2> taps,
                   const WindowOptions& o) {
  const auto stride = to_pair(op, "stride", o.stride),
             dilation = to_pair(op, "dilation", o.dilation);
  const ImagePadding& p = o.padding;
  return {
      axis_over(op, "rows", x.shape(1), taps[0], stride[0], dilation[0], {p.top, p.bottom}, p.same),
      axis_over(op, "columns", x.shape(2), taps[1], stride[1], dilation[1], {p.left, p.right},
                p.same)};
}

TensorView as_nhwc(std::string_view op, std::string_view name, const TensorView& t,
                   ImageLayout layout, FourAxes axes) {
  const bool last = layout == ImageLayout::nhwc, filters = axes == FourAxes::filters;
  const std::string_view channels = filters ? "channels of a group" : "channels";
  if (t.rank() != 4)
    fail(ErrorKind::value, op, ": ", name, ": expected 4 dimensions, ",
         filters ? "filters, " : "batch, ", last ? "rows, columns, " : "", channels,
         last ? "" : ", rows, columns", ", got shape ", t.shape());
  return last ? t : t.permute({0, 2, 3, 1});
}

Dims shape_in(ImageLayout layout, int64_t batch, int64_t rows, int64_t columns, int64_t channels) {
  if (layout == ImageLayout::nhwc) return {batch, rows, columns, channels};
  return {batch, channels, rows, columns};
}

ImageStrides image_strides(const TensorView& t) {
  return {t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

ImagePadding to_padding(std::string_view op, std::string_view name, const Value& v) {
  constexpr std::string_view kForms =
      "\"same\", an int, (rows, columns) or ((top, bottom), (left, right)), got ";
  if (const auto* text = std::get_if<std::string_view>(&v)) {
    if (*text == "same") return ImagePadding::same_size();
    fail(ErrorKind::value, op, ": ", name, " must be ", kForms, "\"", *text, "\"");
  }
  if (const auto* all = std::get_if<int64_t>(&v)) return *all;
  if (const auto* ints = std::get_if<Dims>(&v); ints && (ints->rank() == 1 || ints->rank() == 2))
    return {(*ints)[0], (*ints)[ints->rank() - 1]};
  const auto* pairs = std::get_if<std::vector<Dims>>(&v);
  if (!pairs || pairs->size() != 2 || (*pairs)[0].rank() != 2 || (*pairs)[1].rank() != 2)
    wrong_type(op, name, join(kForms, kind_of(v)));
  ImagePadding padding;
  padding.top = (*pairs)[0][0];
  padding.bottom = (*pairs)[0][1];
  padding.left = (*pairs)[1][0];
  padding.right = (*pairs)[1][1];
  return padding;
}

}  // namespace tensorcraft::op
