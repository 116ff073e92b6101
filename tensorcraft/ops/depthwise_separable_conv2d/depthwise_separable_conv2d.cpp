// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/depthwise_separable_conv2d/depthwise_separable_conv2d.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/depthwise_separable_conv2d/plan.h"
#include "tensorcraft/ops/depthwise_separable_conv2d/problem.hpp"

namespace tensorcraft {
namespace kernel::depthwise_separable_conv2d {
namespace {

using Options = DepthwiseSeparableConv2dOptions;
constexpr std::string_view kName = "depthwise_separable_conv2d";

constexpr auto& kActivations = op::EnumNames<ConvActivation>::names;
constexpr ConfigField kFields[] = {{"threads"},
                                   {"depthwise_activation", kActivations},
                                   {"activation", kActivations},
                                   {"vector"},
                                   {"taps"},
                                   {"stride"},
                                   {"block_m"},
                                   {"block_n"},
                                   {"block_k"},
                                   {"warp_m"},
                                   {"warp_n"},
                                   {"stages"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  Params p{
      .x = q.x.data(),
      .depthwise = q.depthwise.data(),
      .pointwise = q.pointwise.data(),
      .depthwise_bias = data_of(q.depthwise_bias),
      .bias = data_of(q.bias),
      .residual = data_of(q.residual),
      .out = q.out.writable_data(),
      .batch = q.x.shape(0),
      .channels = q.channels(),
      .filters = q.filters(),
      .rows = q.window.rows,
      .columns = q.window.columns,
      .x_at = op::image_strides(q.x),
      .out_at = op::image_strides(q.out),
      .residual_at = q.residual ? op::image_strides(*q.residual) : ImageStrides{},
      .depthwise_at = {q.depthwise.stride(0), q.depthwise.stride(1), q.depthwise.stride(2)},
      .pointwise_at = {q.pointwise.stride(0), q.pointwise.stride(3)},
      .depthwise_bias_stride = q.depthwise_bias ? q.depthwise_bias->stride(0) : 0,
      .bias_stride = q.bias ? q.bias->stride(0) : 0,
      .depthwise_activation = q.depthwise_activation,
      .activation = q.activation,
  };
  const Given given{int(dtype_bytes(q.x.dtype())), q.depthwise_activation, q.activation};
  return {p, given, {q.x.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "rows of places filtered in a cache, then a product", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// Holds what follows from a call's shapes, before there is an output.
struct Shapes {
  TensorView x, depthwise, pointwise;
  op::Window window;
};
Shapes shapes_of(std::span<const TensorView> in, const Options& o) {
  constexpr std::string_view names[] = {"x", "depthwise", "pointwise"};
  op::check_dtype(kName, names[0], in[0], {DType::float32, DType::float16, DType::bfloat16});
  TensorView images[3] = {in[0], in[1], in[2]};
  for (size_t i = 0; i < 3; ++i) {
    if (i > 0) op::check_dtype(kName, names[i], in[i], {in[0].dtype()});
    images[i] = op::as_nhwc(kName, names[i], in[i], o.layout,
                            i == 0 ? op::FourAxes::images : op::FourAxes::filters);
  }
  const auto& [x, depthwise, pointwise] = images;
  const int64_t channels = x.shape(3);
  if (depthwise.shape(3) != 1 || depthwise.shape(0) != channels)
    fail(ErrorKind::value, kName, ": depthwise: expected a window of 1 channel for each of the ",
         channels, " channels of x, got ", depthwise.shape(0), " of ", depthwise.shape(3));
  if (pointwise.shape(1) != 1 || pointwise.shape(2) != 1)
    fail(ErrorKind::value, kName, ": pointwise: expected windows of one place, got ",
         pointwise.shape(1), " x ", pointwise.shape(2));
  if (pointwise.shape(3) != channels)
    fail(ErrorKind::value, kName, ": pointwise: expected filters of the ", channels,
         " channels of x, got ", pointwise.shape(3));
  const op::Window window = op::window_over(kName, x, {depthwise.shape(1), depthwise.shape(2)},
                                            {o.stride, o.padding, o.dilation});
  return {x, depthwise, pointwise, window};
}

Dims result_shape(const Shapes& s, ImageLayout layout) {
  return op::shape_in(layout, s.x.shape(0), s.window.rows.out, s.window.columns.out,
                      s.pointwise.shape(0));
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  return {{"out", in[0].dtype(), result_shape(shapes_of(in, o), o.layout)}};
}

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const Shapes s = shapes_of(call.inputs, o);
  const DType dtype = s.x.dtype();
  const Dims shape = result_shape(s, o.layout);
  op::check_like(kName, "out", call.out(), dtype, shape);
  if (o.depthwise_bias)
    op::check_like(kName, "depthwise_bias", *o.depthwise_bias, dtype, {s.x.shape(3)});
  if (o.bias) op::check_like(kName, "bias", *o.bias, dtype, {s.pointwise.shape(0)});
  if (o.residual) op::check_like(kName, "residual", *o.residual, dtype, shape);
  Problem q{op::as_nhwc(kName, "out", call.out(), o.layout),
            s.x,
            s.depthwise,
            s.pointwise,
            o.depthwise_bias,
            o.bias,
            std::nullopt,
            s.window,
            o.depthwise_activation,
            o.activation};
  if (o.residual) q.residual = op::as_nhwc(kName, "residual", *o.residual, o.layout);
  return q;
}

op::Cost cost(const Problem& q) {
  op::Cost c{
      .bytes = double(q.x.nbytes() + q.depthwise.nbytes() + q.pointwise.nbytes() + q.out.nbytes())};
  for (const auto* t : {&q.depthwise_bias, &q.bias, &q.residual})
    if (*t) c.bytes += double((*t)->nbytes());
  const double places =
      double(q.x.shape(0)) * double(q.window.rows.out) * double(q.window.columns.out);
  c.flops = 2.0 * places * double(q.channels()) * double(q.taps() + q.filters());
  return c;
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "convolution",
    .summary = "Convolution of each channel by itself, then of all channels at each place.",
    .details =
        "out = activation(m @ pointwise + bias + residual) at each place, where m = "
        "depthwise_activation(x * depthwise + depthwise_bias), * the cross-correlation of each "
        "channel with its own window: depthwise_conv2d and conv2d in one call, with m in shared "
        "memory where it fits. Sums are float32; m is rounded to the dtype once, as two calls do. "
        "Any strides: layout is the order of the axes.",
    .inputs = {{"x", "the images: (batch, channels, rows, columns), or channels last"},
               {"depthwise", "(channels, 1, taps, taps), or channels last"},
               {"pointwise", "(filters, channels, 1, 1), or channels last"}},
    .options = {op::positional(
                    op::option("depthwise_bias", &Options::depthwise_bias, "(channels,)")),
                op::positional(op::option("bias", &Options::bias, "(filters,)")),
                op::positional(op::option("stride", &Options::stride,
                                          "of the window: an int, or (rows, columns)")),
                op::positional(op::padding_option(&Options::padding)),
                op::positional(op::option("dilation", &Options::dilation,
                                          "steps from one tap to the next: an int or a pair")),
                op::option("depthwise_activation", &Options::depthwise_activation,
                           "of what is between both convolutions"),
                op::option("activation", &Options::activation, "of the finished sum"),
                op::option("residual", &Options::residual,
                           "added before the activation; shape of the result"),
                op::option("layout", &Options::layout, "of the images")},
    .out_doc = "(batch, filters, rows, columns), or channels last; dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::depthwise_separable_conv2d

void depthwise_separable_conv2d(const TensorView& out, const TensorView& x,
                                const TensorView& depthwise, const TensorView& pointwise,
                                const DepthwiseSeparableConv2dOptions& options) {
  op::run(kernel::depthwise_separable_conv2d::kDefinition, out, {x, depthwise, pointwise}, options);
}

Tensor depthwise_separable_conv2d(const TensorView& x, const TensorView& depthwise,
                                  const TensorView& pointwise,
                                  const DepthwiseSeparableConv2dOptions& options) {
  return std::move(op::allocate(kernel::depthwise_separable_conv2d::kDefinition,
                                {x, depthwise, pointwise}, options)[0]);
}

op::OperatorList ops::depthwise_separable_conv2d() {
  return op::registered(kernel::depthwise_separable_conv2d::kDefinition);
}

}  // namespace tensorcraft
