// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/window.h"
#include "tensorcraft/op/option.hpp"
#include "tensorcraft/op/value.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace tensorcraft {

// The margin of an image that a window moves over; nothing of it is read.
struct ImagePadding {
  // Rows above and below, columns on the left and on the right; each at least 0.
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  // As much as makes the result ceil(size / stride) long; an odd one goes below and to the right.
  bool same = false;

  // None; as much on every side; above and below, and on both other sides; "same".
  ImagePadding() = default;
  ImagePadding(int64_t all) : ImagePadding(all, all) {}  // NOLINT
  ImagePadding(int64_t rows, int64_t columns)
      : top(rows), bottom(rows), left(columns), right(columns) {}
  static ImagePadding same_size() {
    ImagePadding padding;
    padding.same = true;
    return padding;
  }
};

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::ImageLayout> {
  static constexpr std::array<std::string_view, 2> names = {"nchw", "nhwc"};
};

// Operators with a window over images share these: convolution and pooling.
namespace tensorcraft::op {

// Holds the options that a user gives for a window.
struct WindowOptions {
  const Dims& stride;
  const ImagePadding& padding;
  const Dims& dilation;
};
// How the window moves: rows, and columns.
struct Window {
  WindowAxis rows, columns;
};

// One number for both axes, or a number for rows and one for columns. Kind value if one is not from
// 1 to 2^31 - 1, type for another count.
std::array<int64_t, 2> to_pair(std::string_view op, std::string_view name, const Dims& given);

// The window of `taps` rows and columns over the images of `x`, which are [batch, rows, columns,
// channels]. Kind value if the padded image is smaller than the window, or a padding negative.
Window window_over(std::string_view op, const TensorView& x, std::array<int64_t, 2> taps,
                   const WindowOptions& options);

// Says what the first axis of four counts: [batch, ...] or [filters, ...].
enum class FourAxes : uint8_t { images, filters };
// Images or filters as [batch, rows, columns, channels], whatever the layout of `t`, and the
// reverse for a shape. Kind value for another rank than 4.
TensorView as_nhwc(std::string_view op, std::string_view name, const TensorView& t,
                   ImageLayout layout, FourAxes axes = FourAxes::images);
Dims shape_in(ImageLayout layout, int64_t batch, int64_t rows, int64_t columns, int64_t channels);
// Returns the strides of a [batch, rows, columns, channels] view.
ImageStrides image_strides(const TensorView& t);

// "same"; an int for every side; (rows, columns); or ((top, bottom), (left, right)).
ImagePadding to_padding(std::string_view op, std::string_view name, const Value& v);

// The parameter `padding`.
template <class Options>
Option<Options> padding_option(ImagePadding Options::* field) {
  static constexpr std::string_view kSame[] = {"same"};
  Option<Options> o{
      {.name = "padding",
       .doc = "around each image: an int, (rows, columns), ((top, bottom), (left, right)), or",
       .kind = ParameterKind::integer_lists,
       .default_value = "0",
       .choices = kSame},
      {},
      {}};
  o.set = [field](std::string_view op, Options& options, const Value& v) {
    if (!std::holds_alternative<std::monostate>(v)) options.*field = to_padding(op, "padding", v);
  };
  o.add_to = [field](CallKey& key, const Options& options) {
    const ImagePadding& p = options.*field;
    for (const int64_t side : {p.top, p.bottom, p.left, p.right}) key.add(uint64_t(side));
    key.add(uint64_t(p.same));
  };
  return o;
}

}  // namespace tensorcraft::op
