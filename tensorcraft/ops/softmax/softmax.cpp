// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/softmax/plan.h"
#include "tensorcraft/ops/softmax/problem.hpp"

#include <cmath>
#include <utility>

namespace tensorcraft {
namespace kernel::softmax {
namespace {

constexpr std::string_view kFormNames[] = {"softmax", "log_softmax", "logsumexp"};
constexpr std::string_view kMaskNames[] = {"none", "boolean", "like_x", "float32"};
constexpr ConfigField kFields[] = {{"threads"},
                                   {"group"},
                                   {"vector"},
                                   {"slots"},
                                   {"whole"},
                                   {"nested"},
                                   {"cluster"},
                                   {"stages"},
                                   {"form", kFormNames},
                                   {"mask", kMaskNames},
                                   {"scaled"}};

Mask mask_of(const Problem& q) {
  if (!q.mask) return Mask::none;
  if (q.mask->dtype() == DType::bool_) return Mask::boolean;
  return q.mask->dtype() == q.x.dtype() ? Mask::like_x : Mask::float32;
}

CallParams params(const Problem& q) {
  CallParams p = with_maps(Params{.x = q.x.data(),
                                  .out = q.out.writable_data(),
                                  .rows = q.rows(),
                                  .cols = q.cols(),
                                  .x_step = q.x.stride(q.axis),
                                  .out_step = q.form == Form::logsumexp ? 0 : q.out.stride(q.axis),
                                  .scale = q.scale},
                           op::row_map(q.x, q.axis), RowMap{}, op::row_map(q.out, q.axis));
  if (q.mask) {
    p.mask = q.mask->data();
    p.mask_step = q.mask->stride(q.axis);
    p.set_map(Params::kMask, op::row_map(*q.mask, q.axis));
  }
  return p;
}

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  return {params(q),
          {.element_bytes = int(dtype_bytes(q.x.dtype())), .form = q.form, .mask = mask_of(q)},
          {q.x.dtype()}};
}

const auto kLadder = op::make_ladder<rung_call, kRungs>("softmax", kFields);
const auto kSumLadder = kLadder.only(kSumRungs);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, vector exponentials, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

void check_x(Form form, const TensorView& x) {
  op::check_dtype(kFormNames[size_t(form)], "x", x,
                  {DType::float32, DType::float16, DType::bfloat16});
}

int axis_of(Form form, const TensorView& x, int64_t axis) {
  return normalize_axis(axis, x.rank(), kFormNames[size_t(form)].data());
}

template <Form form>
Problem check(const op::Call<SoftmaxOptions>& call) {
  constexpr std::string_view kName = kFormNames[size_t(form)];
  const SoftmaxOptions& o = call.options;
  const TensorView& x = call.in();
  check_x(form, x);
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  if (!std::isfinite(o.scale))
    fail(ErrorKind::value, kName, ": scale must be finite, got ", o.scale);
  Problem q{form, call.out(), x, axis_of(form, x, o.axis), o.scale};
  if (!o.mask) return q;
  op::check_dtype(kName, "mask", *o.mask, {DType::bool_, DType::float32, x.dtype()});
  try {
    q.mask = o.mask->broadcast_to(x.shape());
  } catch (const Error& e) {
    fail(e.kind(), kName, ": mask must broadcast to x: ", e.what());
  }
  return q;
}

Dims result_shape(const TensorView& x, const LogSumExpOptions& o) {
  check_x(Form::logsumexp, x);
  const int axis = axis_of(Form::logsumexp, x, o.axis);
  Dims shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis)
      shape.push_back(x.shape(i));
    else if (o.keepdims)
      shape.push_back(1);
  return shape;
}

std::vector<op::OutputSpec> infer_logsumexp(std::span<const TensorView> in,
                                            const LogSumExpOptions& o) {
  return {{"out", in[0].dtype(), result_shape(in[0], o)}};
}

Problem check_logsumexp(const op::Call<LogSumExpOptions>& call) {
  const TensorView &x = call.in(), &out = call.out();
  const Dims shape = result_shape(x, call.options);
  op::check_like("logsumexp", "out", out, x.dtype(), shape);
  const int axis = axis_of(Form::logsumexp, x, call.options.axis);
  constexpr int64_t kTooMany = int64_t(1) << 30;  // a view may repeat elements without end
  if (x.shape(axis) >= kTooMany)
    fail(ErrorKind::unsupported,
         "logsumexp: x: the axis must have fewer than 2^30 elements, got shape ", x.shape());
  return {Form::logsumexp, call.options.keepdims ? out : out.expand_dims(axis), x, axis};
}

op::Cost cost(const Problem& q) {
  double bytes = double(q.x.nbytes() + q.out.nbytes());
  if (q.mask) {  // elements that broadcast axes share are read once
    double distinct = double(dtype_bytes(q.mask->dtype()));
    for (int i = 0; i < q.mask->rank(); ++i)
      if (q.mask->stride(i) != 0) distinct *= double(q.mask->shape(i));
    bytes += distinct;
  }
  return {.bytes = bytes, .flops = 4.0 * double(q.x.size())};
}

const std::vector<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};

using Options = SoftmaxOptions;
op::Definition<Problem, Options> definition(Form form, std::string_view summary,
                                            std::string_view details) {
  const bool is_log = form == Form::log_softmax;
  return {.name = kFormNames[size_t(form)],
          .group = "normalise",
          .summary = summary,
          .details = details,
          .inputs = {{"x", "the logits"}},
          .options = {op::positional(op::option("axis", &Options::axis,
                                                "axis whose elements together sum to 1")),
                      op::option("scale", &Options::scale, "multiplies x first"),
                      op::option("mask", &Options::mask,
                                 op::takes(op::kMaskTypes,
                                           "broadcast to x: bool, false where x is hidden; or "
                                           "float32 or the dtype of x, added to x scale"))},
          .out_doc = "shape and dtype of x",
          .dtypes = kFloats,
          .in_place = true,
          .check = is_log ? check<Form::log_softmax> : check<Form::softmax>,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
}

const auto kSoftmax = definition(
    Form::softmax, "Exponentials along an axis, scaled to sum to 1.",
    "out = exp(y - max) / sum(exp(y - max)) over the axis with y = x scale + mask. x has any shape "
    "and strides, dtype float32, float16 or bfloat16; computed in float32. Where a bool mask is "
    "false out is 0 whatever x is, and a row of which nothing but -inf is left is 0. Else -inf "
    "gives 0, and a row of nothing but -inf becomes NaN. A row with a NaN or +inf becomes NaN.");
const auto kLogSoftmax = definition(
    Form::log_softmax, "Logarithms of the softmax along an axis.",
    "out = y - max - log(sum(exp(y - max))) over the axis with y = x scale + mask. x has any shape "
    "and strides, dtype float32, float16 or bfloat16; computed in float32. Where a bool mask is "
    "false out is -inf whatever x is, and so is a row of which nothing but -inf is left. Else a "
    "row of nothing but -inf becomes NaN, as does a row with a NaN or +inf.");

using LogOptions = LogSumExpOptions;
const op::Definition<Problem, LogOptions> kLogSumExp{
    .name = "logsumexp",
    .group = "normalise",
    .summary = "Logarithm of the sum of exponentials along an axis.",
    .details =
        "out = max + log(sum(exp(x - max))) over the axis. x has any shape and strides, dtype "
        "float32, float16 or bfloat16; computed in float32. A row of nothing but -inf, or of no "
        "elements, gives -inf, one with +inf gives +inf, one with a NaN gives NaN.",
    .inputs = {{"x", "the logits"}},
    .options = {op::positional(
                    op::option("axis", &LogOptions::axis, "axis whose elements are summed")),
                op::option("keepdims", &LogOptions::keepdims, "keep the axis, with one element")},
    .out_doc = "dtype of x, its shape without the axis",
    .dtypes = kFloats,
    .infer = infer_logsumexp,
    .check = check_logsumexp,
    .cost = cost,
    .ladder = kSumLadder,
    .host = kHost};

}  // namespace
}  // namespace kernel::softmax

void softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options) {
  op::run(kernel::softmax::kSoftmax, out, {x}, options);
}

Tensor softmax(const TensorView& x, const SoftmaxOptions& options) {
  return std::move(op::allocate(kernel::softmax::kSoftmax, {x}, options)[0]);
}

void log_softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options) {
  op::run(kernel::softmax::kLogSoftmax, out, {x}, options);
}

Tensor log_softmax(const TensorView& x, const SoftmaxOptions& options) {
  return std::move(op::allocate(kernel::softmax::kLogSoftmax, {x}, options)[0]);
}

void logsumexp(const TensorView& out, const TensorView& x, const LogSumExpOptions& options) {
  op::run(kernel::softmax::kLogSumExp, out, {x}, options);
}

Tensor logsumexp(const TensorView& x, const LogSumExpOptions& options) {
  return std::move(op::allocate(kernel::softmax::kLogSumExp, {x}, options)[0]);
}

op::OperatorList ops::softmax() {
  namespace s = kernel::softmax;
  return op::registered(s::kSoftmax, s::kLogSoftmax, s::kLogSumExp);
}

}  // namespace tensorcraft
