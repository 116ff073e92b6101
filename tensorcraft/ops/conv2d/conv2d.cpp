// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/conv2d/conv2d.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/conv2d/maps.hpp"
#include "tensorcraft/ops/conv2d/plan.h"
#include "tensorcraft/ops/conv2d/problem.hpp"

namespace tensorcraft {
namespace kernel::conv2d {
namespace {

constexpr std::string_view kFolder = "conv2d", kDepthwiseName = "depthwise_conv2d",
                           kIm2colName{"im2col"};

constexpr ConfigField kFields[] = {
    {"threads"}, {"activation", op::EnumNames<ConvActivation>::names},
    {"vector"},  {"taps"},
    {"stride"},  {"outputs"},
    {"along_k"}, {"block_m"},
    {"block_n"}, {"block_k"},
    {"warp_m"},  {"warp_n"},
    {"stages"},  {"consumers"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  Params p{
      .x = q.x.data(),
      .w = q.w.data(),
      .bias = data_of(q.bias),
      .residual = data_of(q.residual),
      .out = q.out.writable_data(),
      .batch = q.x.shape(0),
      .groups = q.groups,
      .channels = q.channels(),
      .filters = q.filters(),
      .rows = q.window.rows,
      .columns = q.window.columns,
      .x_at = op::image_strides(q.x),
      .out_at = op::image_strides(q.out),
      .residual_at = q.residual ? op::image_strides(*q.residual) : ImageStrides{},
      .w_at = {q.w.stride(0), q.w.stride(1), q.w.stride(2), q.w.stride(3)},
      .bias_stride = q.bias ? q.bias->stride(0) : 0,
      .by_columns = divider_of(q.window.columns.out),
      .by_image = divider_of(q.window.rows.out * q.window.columns.out),
  };
  return {p, {int(dtype_bytes(q.x.dtype())), q.activation, q.allow_tf32}, {q.x.dtype()}};
}

void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo& device) {
  add_maps(plan, rung_call(q).params, q.x.dtype(), device);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "onednn",
     .idea = "oneDNN's convolution, one slice of images, rows or filters a thread",
     .run = onednn,
     .refusal = onednn_refusal},
    {.name = "cpu",
     .idea = "windows of some places at a time, multiplied by the filters; rows for depthwise",
     .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// depthwise_conv2d has a group a channel.
int64_t groups_of(std::string_view op, const TensorView& x, const Conv2dOptions& o) {
  if (op != kDepthwiseName) return o.groups;
  if (o.groups != 1)
    fail(ErrorKind::value, op,
         ": groups: each channel is a group of its own, so it must be left out, got ", o.groups);
  return std::max<int64_t>(1, x.shape(3));
}

void check_groups(std::string_view op, const TensorView& x, const TensorView& w, int64_t groups) {
  const int64_t channels = x.shape(3), filters = w.shape(0);
  if (groups < 1) fail(ErrorKind::value, op, ": groups must be at least 1, got ", groups);
  if (channels % groups != 0)
    fail(ErrorKind::value, op, ": groups must divide the ", channels, " channels of x, got ",
         groups);
  if (filters % groups != 0)
    fail(ErrorKind::value, op, ": groups must divide the ", filters, " filters of w, got ", groups);
  if (w.shape(3) != channels / groups)
    fail(ErrorKind::value, op, ": w: expected filters of ", channels / groups, " channels (",
         channels, " channels of x in ", groups, " groups), got ", w.shape(3));
}

// Holds what follows from a call's shapes, before there is an output.
struct Shapes {
  TensorView x, w;
  op::Window window;
  int64_t groups;
};
Shapes shapes_of(std::string_view op, std::span<const TensorView> in, const Conv2dOptions& o) {
  op::check_dtype(op, "x", in[0], {DType::float32, DType::float16, DType::bfloat16});
  op::check_dtype(op, "w", in[1], {in[0].dtype()});
  const TensorView x = op::as_nhwc(op, "x", in[0], o.layout);
  const TensorView w = op::as_nhwc(op, "w", in[1], o.layout, op::FourAxes::filters);
  const int64_t groups = groups_of(op, x, o);
  check_groups(op, x, w, groups);
  const op::Window window =
      op::window_over(op, x, {w.shape(1), w.shape(2)}, {o.stride, o.padding, o.dilation});
  return {x, w, window, groups};
}

Dims result_shape(const Shapes& s, ImageLayout layout) {
  return op::shape_in(layout, s.x.shape(0), s.window.rows.out, s.window.columns.out, s.w.shape(0));
}

std::vector<op::OutputSpec> infer_as(std::string_view op, std::span<const TensorView> in,
                                     const Conv2dOptions& o) {
  return {{"out", in[0].dtype(), result_shape(shapes_of(op, in, o), o.layout)}};
}

Problem check_as(std::string_view op, const op::Call<Conv2dOptions>& call) {
  const Conv2dOptions& o = call.options;
  const Shapes s = shapes_of(op, call.inputs, o);
  const DType dtype = s.x.dtype();
  const Dims shape = result_shape(s, o.layout);
  op::check_like(op, "out", call.out(), dtype, shape);
  if (o.bias) op::check_like(op, "bias", *o.bias, dtype, {s.w.shape(0)});
  if (o.residual) op::check_like(op, "residual", *o.residual, dtype, shape);
  Problem q{op::as_nhwc(op, "out", call.out(), o.layout),
            s.x,
            s.w,
            o.bias,
            std::nullopt,
            s.window,
            s.groups,
            o.activation,
            o.allow_tf32.value_or(config().allow_tf32)};
  if (o.residual) q.residual = op::as_nhwc(op, "residual", *o.residual, o.layout);
  return q;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Conv2dOptions& o) {
  return infer_as(kFolder, in, o);
}
Problem check(const op::Call<Conv2dOptions>& call) { return check_as(kFolder, call); }
std::vector<op::OutputSpec> infer_depthwise(std::span<const TensorView> in,
                                            const Conv2dOptions& o) {
  return infer_as(kDepthwiseName, in, o);
}
Problem check_depthwise(const op::Call<Conv2dOptions>& call) {
  return check_as(kDepthwiseName, call);
}

op::Cost cost(const Problem& q) {
  op::Cost c{
      .bytes = double(q.x.nbytes() + q.w.nbytes() + q.out.nbytes()),
      .flops = 2.0 * double(q.out.size()) * double(q.taps() * q.channels()),
      .may_round_to_tf32 = q.allow_tf32 && q.x.dtype() == DType::float32 && q.channels() > 1};
  for (const auto* t : {&q.bias, &q.residual})
    if (*t) c.bytes += double((*t)->nbytes());
  return c;
}

op::RungCall<Im2colParams, op::NoGiven> im2col_call(const Im2colProblem& q) {
  const bool first = q.layout == ImageLayout::nchw;
  return {Im2colParams{.x = q.x.data(),
                       .out = q.out.writable_data(),
                       .batch = q.x.shape(0),
                       .channels = q.x.shape(3),
                       .rows = q.window.rows,
                       .columns = q.window.columns,
                       .x_at = op::image_strides(q.x),
                       .out_sample = q.out.stride(0),
                       .out_position = q.out.stride(first ? 2 : 1),
                       .out_element = q.out.stride(first ? 1 : 2),
                       .channels_first = first},
          {},
          {op::moved_as(int(dtype_bytes(q.x.dtype())))}};
}

const op::HostVariant<Im2colProblem> kIm2colHost[] = {
    {.name = "cpu", .idea = "lines of the matrix over all cores", .run = im2col_cpu},
    {.name = "reference", .idea = "obvious loops", .run = im2col_reference},
};

op::Window im2col_window(const TensorView& x, const Im2colOptions& o) {
  return op::window_over(kIm2colName, x, op::to_pair(kIm2colName, "window", o.window),
                         {o.stride, o.padding, o.dilation});
}

std::vector<op::OutputSpec> infer_im2col(std::span<const TensorView> in, const Im2colOptions& o) {
  op::check_dtype(kIm2colName, "x", in[0], {DType::float32, DType::float16, DType::bfloat16});
  const TensorView x = op::as_nhwc(kIm2colName, "x", in[0], o.layout);
  const op::Window w = im2col_window(x, o);
  const int64_t positions = w.rows.out * w.columns.out;
  const int64_t elements = w.rows.taps * w.columns.taps * x.shape(3);
  const Dims shape = o.layout == ImageLayout::nchw ? Dims{x.shape(0), elements, positions}
                                                   : Dims{x.shape(0), positions, elements};
  return {{"out", x.dtype(), shape}};
}

Im2colProblem check_im2col(const op::Call<Im2colOptions>& call) {
  const op::OutputSpec spec = infer_im2col(call.inputs, call.options)[0];
  op::check_like(kIm2colName, "out", call.out(), spec.dtype, spec.shape);
  const TensorView x = op::as_nhwc(kIm2colName, "x", call.in(), call.options.layout);
  return {call.out(), x, im2col_window(x, call.options), call.options.layout};
}

op::Cost im2col_cost(const Im2colProblem& q) {
  return {.bytes = double(q.x.nbytes()) + double(q.out.nbytes())};
}

using Options = Conv2dOptions;
constexpr std::string_view kStrideDoc = "of the window: an int, or (rows, columns)";
constexpr std::string_view kDilationDoc = "steps from one tap to the next: an int or a pair";
constexpr std::string_view kLayoutDoc = "of the images";
// Both names, which differ in what groups are.
op::Definition<Problem, Options> definition(std::string_view name, std::string_view summary,
                                            std::string_view details, std::string_view w_doc,
                                            decltype(infer)* infer_it, decltype(check)* check_it,
                                            const op::Ladder<Problem>& ladder) {
  return {.name = name,
          .group = "convolution",
          .summary = summary,
          .details = details,
          .inputs = {{"x", "the images: (batch, channels, rows, columns), or channels last"},
                     {"w", w_doc}},
          .options = {op::positional(op::option("bias", &Options::bias, "(filters,)")),
                      op::positional(op::option("stride", &Options::stride, kStrideDoc)),
                      op::positional(op::padding_option(&Options::padding)),
                      op::positional(op::option("dilation", &Options::dilation, kDilationDoc)),
                      op::positional(op::option("groups", &Options::groups,
                                                "of channels, each with its own filters")),
                      op::option("activation", &Options::activation, "of the finished sum"),
                      op::option("residual", &Options::residual,
                                 "added before the activation; shape of the result"),
                      op::option("layout", &Options::layout, kLayoutDoc),
                      op::option("allow_tf32", &Options::allow_tf32,
                                 "float32 may be rounded to tf32 before it is multiplied")},
          .out_doc = "(batch, filters, rows, columns), or channels last; dtype of x",
          .dtypes = {DType::float32, DType::float16, DType::bfloat16},
          .infer = infer_it,
          .check = check_it,
          .cost = cost,
          .ladder = ladder,
          .host = kHost};
}

const op::Definition<Problem, Options> kConv2d = definition(
    kFolder, "Convolution of images with filters.",
    "out = activation(x * w + bias + residual), * the cross-correlation of each image with each "
    "filter. Sums are float32, rounded once; float32 images and filters are rounded to tf32 only "
    "if allow_tf32 or the configuration says so. Any strides: layout is the order of the axes, and "
    "images of either may lie in memory as those of the other. padding=\"same\" makes the result "
    "ceil(size / stride) long; an odd column or row of it goes to the right and below.",
    "(filters, channels / groups, taps, taps), or channels last", infer, check,
    op::make_ladder<rung_call, kRungs, complete>(kFolder, kFields));
const op::Definition<Problem, Options> kDepthwiseConv2d =
    definition(kDepthwiseName, "Convolution of each channel by itself.",
               "conv2d with a group for each channel: w has one channel, and as many filters as x "
               "channels or a multiple.",
               "(filters, 1, taps, taps), or channels last", infer_depthwise, check_depthwise,
               op::make_ladder<rung_call, kDepthwiseRungs>(kFolder, kFields));

const op::Definition<Im2colProblem, Im2colOptions> kIm2colDefinition{
    .name = kIm2colName,
    .group = "convolution",
    .summary = "The windows of images as a matrix.",
    .details =
        "With it a convolution is a product: layout \"nchw\" gives (batch, channels * taps, "
        "positions) for w.reshape(filters, -1) @ out, \"nhwc\" (batch, positions, taps * channels) "
        "for out @ w.reshape(filters, -1).T. Bits are copied; outside an image they are 0.",
    .inputs = {{"x", "the images: (batch, channels, rows, columns), or channels last"}},
    .options = {op::positional(op::option("window", &Im2colOptions::window,
                                          "taps: an int, or (rows, columns)")),
                op::positional(op::option("stride", &Im2colOptions::stride, kStrideDoc)),
                op::positional(op::padding_option(&Im2colOptions::padding)),
                op::positional(op::option("dilation", &Im2colOptions::dilation, kDilationDoc)),
                op::option("layout", &Im2colOptions::layout, kLayoutDoc)},
    .out_doc = "a matrix for each image, dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer_im2col,
    .check = check_im2col,
    .cost = im2col_cost,
    .ladder = op::make_ladder<im2col_call, kIm2colRungs>(kFolder, op::kThreads, "Im2colConfig"),
    .host = kIm2colHost};

}  // namespace
}  // namespace kernel::conv2d

void conv2d(const TensorView& out, const TensorView& x, const TensorView& w,
            const Conv2dOptions& options) {
  op::run(kernel::conv2d::kConv2d, out, {x, w}, options);
}
Tensor conv2d(const TensorView& x, const TensorView& w, const Conv2dOptions& options) {
  return std::move(op::allocate(kernel::conv2d::kConv2d, {x, w}, options)[0]);
}
void depthwise_conv2d(const TensorView& out, const TensorView& x, const TensorView& w,
                      const Conv2dOptions& options) {
  op::run(kernel::conv2d::kDepthwiseConv2d, out, {x, w}, options);
}
Tensor depthwise_conv2d(const TensorView& x, const TensorView& w, const Conv2dOptions& options) {
  return std::move(op::allocate(kernel::conv2d::kDepthwiseConv2d, {x, w}, options)[0]);
}
void im2col(const TensorView& out, const TensorView& x, const Im2colOptions& options) {
  op::run(kernel::conv2d::kIm2colDefinition, out, {x}, options);
}
Tensor im2col(const TensorView& x, const Im2colOptions& options) {
  return std::move(op::allocate(kernel::conv2d::kIm2colDefinition, {x}, options)[0]);
}

op::OperatorList ops::conv2d() {
  using namespace kernel::conv2d;
  return op::registered(kConv2d, kDepthwiseConv2d, kIm2colDefinition);
}

}  // namespace tensorcraft
