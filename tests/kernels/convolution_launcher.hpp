// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/conv2d/conv2d.hpp"
#include "tensorcraft/ops/conv2d/plan.h"
#include "tests/kernels/launcher_call.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tensorcraft::test {

// Rows or columns: a launcher is told the margins on both sides, and a case all of them.
inline WindowAxis axis_of(const LauncherCall& c, int along, int64_t in, int64_t out, int64_t taps) {
  const auto number = [&](std::string_view name) {
    const auto* pair = c.given<Dims>(name);
    return pair ? (*pair)[size_t(along)] : c.option<int64_t>(name, 1);
  };
  const int64_t stride = number("stride"), dilation = number("dilation");
  int64_t before = c.option<int64_t>("padding", 0);
  if (const auto* pair = c.given<Dims>("padding")) before = (*pair)[size_t(along)];
  if (const auto* sides = c.given<std::vector<Dims>>("padding"))
    before = (*sides)[size_t(along)][0];
  if (c.given<std::string_view>("padding"))
    before = std::max<int64_t>(0, (out - 1) * stride + (taps - 1) * dilation + 1 - in) / 2;
  return {in, out, taps, stride, dilation, before};
}
inline kernel::conv2d::Sizes sizes_of(const LauncherCall& c, ImageLayout layout,
                                      const TensorView& out, int64_t rows, int64_t columns,
                                      int64_t groups) {
  const TensorView& x = c.in();
  const int first = layout == ImageLayout::nhwc ? 1 : 2;
  const int channels = layout == ImageLayout::nhwc ? 3 : 1;
  return {.batch = x.shape(0),
          .channels = x.shape(channels),
          .filters = out.shape(channels),
          .groups = groups,
          .rows = axis_of(c, 0, x.shape(first), out.shape(first), rows),
          .columns = axis_of(c, 1, x.shape(first + 1), out.shape(first + 1), columns),
          .layout = layout};
}

// Compares what the launchers make of a case; false if none can express it.
inline bool compare_convolution(const LauncherCall& c) {
  namespace v = kernel::conv2d;
  const auto layout = c.choice("layout", ImageLayout::nchw);
  const TensorView& w = c.in(1);
  const int first = layout == ImageLayout::nhwc ? 1 : 2;
  const bool is_depthwise = c.name() == "depthwise_conv2d";
  const int64_t channels = c.in().shape(layout == ImageLayout::nhwc ? 3 : 1);
  const v::Sizes sizes = sizes_of(c, layout, c.out(), w.shape(first), w.shape(first + 1),
                                  is_depthwise ? channels : c.option<int64_t>("groups", 1));
  const v::Tensors t{c.in().data(), w.data(), c.address("bias"), c.address("residual"),
                     c.out().writable_data()};
  const v::Given given{c.element_bytes(), c.choice("activation", ConvActivation::none),
                       c.option("allow_tf32", false)};
  const v::Params p = v::contiguous_params(t, sizes);
  if (is_depthwise)
    c.expect_rungs(v::kDepthwiseRungs, p, given);
  else
    c.expect_rungs(v::kRungs, p, given);
  return true;
}

inline bool compare_im2col(const LauncherCall& c) {
  namespace v = kernel::conv2d;
  const auto layout = c.choice("layout", ImageLayout::nchw);
  const auto* pair = c.given<Dims>("window");
  const int64_t side = c.option<int64_t>("window", 1), rows = pair ? (*pair)[0] : side,
                columns = pair ? (*pair)[1] : side;
  // The result says only rows times columns, so both are computed here from an even margin.
  const TensorView& x = c.in();
  const int first = layout == ImageLayout::nhwc ? 1 : 2;
  const auto* sides = c.given<std::vector<Dims>>("padding");
  const auto* same = c.given<Dims>("padding");
  if (sides || same || c.given<std::string_view>("padding")) return false;
  const int64_t margin = c.option<int64_t>("padding", 0);
  const auto along = [&](int axis, int64_t taps) {
    WindowAxis a = axis_of(c, axis, x.shape(first + axis), 0, taps);
    a.out = (a.in + 2 * margin - (taps - 1) * a.dilation - 1) / a.stride + 1;
    return a;
  };
  const v::Sizes sizes{.batch = x.shape(0),
                       .channels = x.shape(layout == ImageLayout::nhwc ? 3 : 1),
                       .filters = 0,
                       .groups = 1,
                       .rows = along(0, rows),
                       .columns = along(1, columns),
                       .layout = layout};
  c.expect_rungs(v::kIm2colRungs, v::contiguous_params(x.data(), c.out().writable_data(), sizes),
                 op::NoGiven{});
  return true;
}

}  // namespace tensorcraft::test
