// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/causal_conv1d/causal_conv1d.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/causal_conv1d/plan.h"
#include "tensorcraft/ops/causal_conv1d/problem.hpp"

namespace tensorcraft {
namespace kernel::causal_conv1d {
namespace {

constexpr std::string_view kName = "causal_conv1d";
constexpr int64_t kMaxWidth = 16;
constexpr ConfigField kFields[] = {{"threads"}, {"vector"}, {"width"}, {"tokens"}};

Strides strides_of(const std::optional<TensorView>& t) {
  return t ? Strides{t->stride(0), t->stride(1), t->stride(2)} : Strides{};
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {Params{.x = q.x.data(),
                 .w = q.w.data(),
                 .bias = data_of(q.bias),
                 .state = data_of(q.state),
                 .out = q.out.writable_data(),
                 .new_state = data_of<void>(q.new_state),
                 .batch = q.x.shape(0),
                 .tokens = q.tokens(),
                 .channels = q.channels(),
                 .width = q.width(),
                 .x_at = strides_of(q.x),
                 .out_at = strides_of(q.out),
                 .state_at = strides_of(q.state),
                 .new_state_at = strides_of(q.new_state),
                 .w_channel = q.w.stride(0),
                 .w_tap = q.w.stride(1),
                 .bias_stride = q.bias ? q.bias->stride(0) : 0,
                 .silu = q.silu},
          {int(dtype_bytes(q.x.dtype()))},
          {q.x.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, tokens over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// The width.
int64_t checked_width(const TensorView& x, const TensorView& w) {
  SymbolicSize batch("batch"), tokens("tokens"), channels("channels"), width("width");
  SymbolicDType dtype({DType::float32, DType::float16, DType::bfloat16});
  TensorMatcher({batch, tokens, channels})
      .with_any_strides()
      .with_dtype(dtype)
      .verify(x, kName, "x");
  TensorMatcher({channels, width}).with_any_strides().with_dtype(dtype).verify(w, kName, "w");
  if (width.unwrap() < 1 || width.unwrap() > kMaxWidth)
    fail(ErrorKind::value, kName, ": w: expected a width from 1 to ", kMaxWidth, ", got ",
         width.unwrap());
  return width.unwrap();
}
Dims state_shape(const TensorView& x, int64_t width) { return {x.shape(0), width - 1, x.shape(2)}; }

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const CausalConv1dOptions& o) {
  const int64_t width = checked_width(in[0], in[1]);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), in[0].shape()}};
  if (o.return_state) specs.push_back({"new_state", in[0].dtype(), state_shape(in[0], width)});
  return specs;
}

Problem check(const op::Call<CausalConv1dOptions>& call) {
  const CausalConv1dOptions& o = call.options;
  const TensorView& x = call.in(0);
  const Dims states = state_shape(x, checked_width(x, call.in(1)));
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  if (o.bias) op::check_like(kName, "bias", *o.bias, x.dtype(), {x.shape(2)});
  if (o.state) op::check_like(kName, "state", *o.state, x.dtype(), states);
  if (o.new_state) op::check_like(kName, "new_state", *o.new_state, x.dtype(), states);
  if (o.new_state && x.shape(1) == 0)
    fail(ErrorKind::value, kName, ": x: a new state needs at least one token, got shape ",
         x.shape());
  return {call.out(), x, call.in(1), o.bias, o.state, o.new_state, o.silu};
}

op::Cost cost(const Problem& q) {
  op::Cost c{.bytes = double(q.x.nbytes() + q.w.nbytes() + q.out.nbytes()),
             .flops = 2.0 * double(q.x.size()) * double(q.width())};
  for (const auto* t : {&q.bias, &q.state, &q.new_state})
    if (*t) c.bytes += double((*t)->nbytes());
  return c;
}

using Options = CausalConv1dOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "convolution",
    .summary = "Convolution of each channel over the tokens before and at each.",
    .details =
        "out[b, t, c] = sum of w[c, i] x[b, t - (width - 1) + i, c], + bias[c], then silu if asked "
        "for. What comes before the first token is state, or 0. A sequence that is given in "
        "pieces, "
        "each with the new state of the one before, gives the bits of the whole. Sums are float32, "
        "rounded once.",
    .inputs = {{"x", "(batch, tokens, channels), any strides"},
               {"w", "(channels, width), a width of 1 to 16"}},
    .options = {op::positional(op::option("bias", &Options::bias, "(channels,)")),
                op::option("silu", &Options::silu, "whether the result is activated"),
                op::option("state", &Options::state,
                           "(batch, width - 1, channels): the tokens before x"),
                op::option("return_state", &Options::return_state,
                           "return (out, new_state) with the tokens before the next piece")},
    .out_doc = "shape and dtype of x",
    .extra_outputs = {{{"new_state", "(batch, width - 1, channels), dtype of x", "return_state"},
                       &Options::new_state}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::causal_conv1d

void causal_conv1d(const TensorView& out, const TensorView& x, const TensorView& w,
                   const CausalConv1dOptions& options) {
  op::run(kernel::causal_conv1d::kDefinition, out, {x, w}, options);
}

CausalConv1dResult causal_conv1d(const TensorView& x, const TensorView& w,
                                 const CausalConv1dOptions& options) {
  auto tensors = op::allocate(kernel::causal_conv1d::kDefinition, {x, w}, options);
  CausalConv1dResult result{std::move(tensors[0]), {}};
  if (tensors.size() > 1) result.new_state = std::move(tensors[1]);
  return result;
}

op::OperatorList ops::causal_conv1d() { return op::registered(kernel::causal_conv1d::kDefinition); }

}  // namespace tensorcraft
