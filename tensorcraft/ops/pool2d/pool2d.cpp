// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pool2d/pool2d.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/pool2d/plan.h"
#include "tensorcraft/ops/pool2d/problem.hpp"

namespace tensorcraft {
namespace kernel::pool2d {
namespace {

constexpr std::string_view kMax = "max_pool2d", kMean = "avg_pool2d";
constexpr ConfigField kFields[] = {{"threads"}, {"vector"}, {"mean"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {Params{.x = q.x.data(),
                 .out = q.out.writable_data(),
                 .batch = q.x.shape(0),
                 .channels = q.x.shape(3),
                 .rows = q.window.rows,
                 .columns = q.window.columns,
                 .x_at = op::image_strides(q.x),
                 .out_at = op::image_strides(q.out),
                 .count_padding = q.count_padding},
          {int(dtype_bytes(q.x.dtype())), q.mean},
          {q.x.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// Holds what follows from a call's shapes, before there is an output.
struct Shapes {
  TensorView x;
  op::Window window;
};
template <class Options>
Shapes shapes_of(std::string_view op, const TensorView& given, const Options& o) {
  op::check_dtype(op, "x", given, {DType::float32, DType::float16, DType::bfloat16});
  const TensorView x = op::as_nhwc(op, "x", given, o.layout);
  Dims dilation = {1};
  if constexpr (requires { o.dilation; }) dilation = o.dilation;
  return {x, op::window_over(op, x, op::to_pair(op, "window", o.window),
                             {o.stride.value_or(o.window), o.padding, dilation})};
}
Dims result_shape(const Shapes& s, ImageLayout layout) {
  return op::shape_in(layout, s.x.shape(0), s.window.rows.out, s.window.columns.out, s.x.shape(3));
}

template <class Options>
constexpr std::string_view kName = std::is_same_v<Options, AvgPool2dOptions> ? kMean : kMax;

template <class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  return {{"out", in[0].dtype(), result_shape(shapes_of(kName<Options>, in[0], o), o.layout)}};
}

template <class Options>
Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const Shapes s = shapes_of(kName<Options>, call.in(), o);
  op::check_like(kName<Options>, "out", call.out(), s.x.dtype(), result_shape(s, o.layout));
  Problem q{op::as_nhwc(kName<Options>, "out", call.out(), o.layout), s.x, s.window, false, false};
  if constexpr (requires { o.count_padding; }) {
    q.mean = true;
    q.count_padding = o.count_padding;
  }
  return q;
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes()) + double(q.out.nbytes()),
          .flops = double(q.out.size()) * double(q.window.rows.taps * q.window.columns.taps)};
}

template <class Options>
op::Definition<Problem, Options> definition(std::string_view summary, std::string_view details) {
  op::Definition<Problem, Options> d{
      .name = kName<Options>,
      .group = "convolution",
      .summary = summary,
      .details = details,
      .inputs = {{"x", "the images: (batch, channels, rows, columns), or channels last"}},
      .out_doc = "(batch, channels, rows, columns), or channels last; dtype of x",
      .dtypes = {DType::float32, DType::float16, DType::bfloat16},
      .infer = infer<Options>,
      .check = check<Options>,
      .cost = cost,
      .ladder = op::make_ladder<rung_call, kRungs>("pool2d", kFields),
      .host = kHost};
  const auto window =
      op::positional(op::option("window", &Options::window, "taps: an int, or (rows, columns)"));
  const auto stride = op::positional(
      op::option("stride", &Options::stride, "of the window: an int or a pair; as long as it"));
  const auto padding = op::positional(op::padding_option(&Options::padding));
  const auto layout = op::option("layout", &Options::layout, "of the images");
  if constexpr (requires(Options o) { o.dilation; })
    d.options = {window, stride, padding,
                 op::positional(op::option("dilation", &Options::dilation,
                                           "steps from one tap to the next: an int or a pair")),
                 layout};
  else
    d.options = {window, stride, padding,
                 op::option("count_padding", &Options::count_padding,
                            "whether zeros around the image are counted"),
                 layout};
  return d;
}

const op::Definition<Problem, MaxPool2dOptions> kMaxPool = definition<MaxPool2dOptions>(
    "The largest element of each window of images.",
    "A window with a NaN gives NaN, and one without an element of the image -inf.");
const op::Definition<Problem, AvgPool2dOptions> kAvgPool = definition<AvgPool2dOptions>(
    "The mean of each window of images.",
    "Computed in float32. Zeros around an image are counted unless count_padding is False; a "
    "window without an element of the image gives 0. The mean of whole images is mean().");

}  // namespace
}  // namespace kernel::pool2d

void max_pool2d(const TensorView& out, const TensorView& x, const MaxPool2dOptions& options) {
  op::run(kernel::pool2d::kMaxPool, out, {x}, options);
}
Tensor max_pool2d(const TensorView& x, const MaxPool2dOptions& options) {
  return std::move(op::allocate(kernel::pool2d::kMaxPool, {x}, options)[0]);
}
void avg_pool2d(const TensorView& out, const TensorView& x, const AvgPool2dOptions& options) {
  op::run(kernel::pool2d::kAvgPool, out, {x}, options);
}
Tensor avg_pool2d(const TensorView& x, const AvgPool2dOptions& options) {
  return std::move(op::allocate(kernel::pool2d::kAvgPool, {x}, options)[0]);
}

op::OperatorList ops::pool2d() {
  return op::registered(kernel::pool2d::kMaxPool, kernel::pool2d::kAvgPool);
}

}  // namespace tensorcraft
