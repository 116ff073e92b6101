// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/norm/norm.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/host/code_rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/norm/plan.h"
#include "tensorcraft/ops/norm/problem.hpp"
#include "tensorcraft/ops/registry.hpp"

#include <limits>
#include <type_traits>
#include <utility>

namespace tensorcraft {
namespace kernel::norm {
namespace {

constexpr std::string_view kNames[] = {"layer_norm", "rms_norm"};
constexpr std::string_view kFormNames[] = {"layer", "rms"};
constexpr ConfigField kFields[] = {{"threads"},
                                   {"group"},
                                   {"vector"},
                                   {"slots"},
                                   {"activation", op::EnumNames<Activation>::names},
                                   {"has_residual"},
                                   {"has_weight"},
                                   {"has_bias"},
                                   {"whole"},
                                   {"nested"},
                                   {"cluster"},
                                   {"stages"},
                                   {"form", kFormNames}};

CallParams params(const Problem& q) {
  const op::LastAxisRows x(q.x), out(q.out), residual(q.residual), residual_out(q.residual_out);
  return with_maps(Params{.x_step = x.step,
                          .residual_step = residual.step,
                          .out_step = out.step,
                          .residual_out_step = residual_out.step,
                          .scale = q.scale,
                          .activation = q.is_quantized() ? q.activation : Activation::none,
                          .scales = data_of<float>(q.scales),
                          .x = x.data,
                          .residual = residual.data,
                          .weight = data_of(q.weight),
                          .bias = data_of(q.bias),
                          .out = out.data,
                          .residual_out = residual_out.data,
                          .mean = data_of<float>(q.mean),
                          .rstd = data_of<float>(q.rstd),
                          .rows = q.rows(),
                          .cols = q.cols(),
                          .inverse_cols = 1.0f / float(q.cols()),
                          .eps = q.eps},
                   x.map, residual.map, out.map, residual_out.map);
}

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const DType x = q.x.dtype();
  const DType weights = q.weight ? q.weight->dtype() : q.bias ? q.bias->dtype() : x;
  const Given given{.config = {.activation = q.activation,
                               .has_residual = q.residual.has_value(),
                               .has_weight = q.weight.has_value(),
                               .has_bias = q.bias.has_value(),
                               .form = q.form},
                    .element_bytes = int(dtype_bytes(x)),
                    .weight_bytes = int(dtype_bytes(weights)),
                    .is_quantized = q.is_quantized()};
  if (q.is_quantized()) return {params(q), given, {x, weights, q.out.dtype()}};
  return {params(q), given, {x, weights}};
}

const jit::Rung& kQuantized = op::make_rung("norm", "quantized", "06_quantized.cuh", kFields);
const jit::Rung& kQuantizedRows =
    op::make_rung("norm", "quantized_in_registers", "07_quantized_in_registers.cuh", kFields);

// Codes come from kernels of their own by the same variants.
void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo&) {
  if (q.is_quantized())
    plan.first().kernel.rung = rung == kHoldsRows ? &kQuantizedRows : &kQuantized;
}

const auto kLadder = op::make_ladder<rung_call, kRungs, complete>("norm", kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// A call of either operator: what rms_norm takes layer_norm does too.
template <class Options>
constexpr Form kForm = std::is_same_v<Options, LayerNormOptions> ? Form::layer : Form::rms;
const LayerNormOptions& common(const LayerNormOptions& o) { return o; }
LayerNormOptions common(const RmsNormOptions& o) {
  return {.weight = o.weight,
          .eps = o.eps,
          .residual = o.residual,
          .out_dtype = o.out_dtype,
          .scale = o.scale,
          .per_token = o.per_token,
          .residual_out = o.residual_out,
          .scales = o.scales};
}

Dims stats_shape(const TensorView& x) {
  Dims shape;
  for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(x.shape(i));
  return shape;
}

// Also what the call says of codes.
void check_x(std::string_view name, const TensorView& x, const LayerNormOptions& o) {
  op::check_dtype(name, "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() == 0)
    fail(ErrorKind::value, name, ": x: expected at least 1 dimension, got shape ", x.shape());
  const DType dtype = o.out_dtype.value_or(x.dtype());
  const bool codes = host::is_code_dtype(dtype);
  if (!codes && dtype != x.dtype())
    fail(ErrorKind::type, name, ": out_dtype must be float8_e4m3fn, float8_e5m2, int8 or that of ",
         "x, ", x.dtype(), ", got ", dtype);
  if (codes && o.scale.has_value() == o.per_token)
    fail(ErrorKind::value, name, ": out_dtype ", dtype,
         " needs either scale or per_token=True, and not both");
  if (!codes && (o.scale || o.per_token))
    fail(ErrorKind::value, name, ": scale and per_token are of codes; give out_dtype too");
  if (o.scale && !(*o.scale > 0 && *o.scale <= std::numeric_limits<float>::max()))
    fail(ErrorKind::value, name, ": scale must be finite and above 0, got ", *o.scale);
}

template <class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& options) {
  const LayerNormOptions& o = common(options);
  const TensorView& x = in[0];
  check_x(kNames[size_t(kForm<Options>)], x, o);
  std::vector<op::OutputSpec> specs{{"out", o.out_dtype.value_or(x.dtype()), x.shape()}};
  if (o.return_stats)
    for (const auto* name : {"mean", "rstd"})
      specs.push_back({name, DType::float32, stats_shape(x)});
  if (o.per_token) specs.push_back({"scales", DType::float32, stats_shape(x)});
  if (o.residual) specs.push_back({"residual_out", x.dtype(), x.shape()});
  return specs;
}

void check_vectors(std::string_view name, const TensorView& out, const TensorView& x,
                   const LayerNormOptions& o) {
  SymbolicSize cols("cols");
  cols.set_value(x.shape(x.rank() - 1));
  SymbolicDType dtype({x.dtype()});
  if (x.dtype() != DType::float32) dtype.set_options({x.dtype(), DType::float32});
  const auto check = [&](const std::optional<TensorView>& t, std::string_view argument) {
    if (!t) return;
    TensorMatcher({cols}).with_dtype(dtype).verify(*t, name, argument);
    for (const auto& written : {std::optional(out), o.residual_out, o.scales})
      if (written) op::check_apart(name, "an output", *written, argument, *t);
  };
  check(o.weight, "weight");
  check(o.bias, "bias");
}

void check_stats(std::string_view name, const TensorView& x, const LayerNormOptions& o) {
  const auto check = [&](const std::optional<TensorView>& t, std::string_view argument) {
    if (!t) return;
    op::check_like(name, argument, *t, DType::float32, stats_shape(x));
    if (!t->is_contiguous())
      fail(ErrorKind::value, name, ": ", argument, " must be contiguous, got strides ",
           t->strides());
    if (x.shape(x.rank() - 1) == 0)
      fail(ErrorKind::value, name, ": rows of 0 elements have no ", argument, ", got x of shape ",
           x.shape());
  };
  check(o.mean, "mean");
  check(o.rstd, "rstd");
  check(o.scales, "scales");
  if (o.scales.has_value() != o.per_token)
    fail(ErrorKind::value, name, ": scales is written where per_token is set; give both or none");
}

template <class Options>
Problem check(const op::Call<Options>& call) {
  constexpr std::string_view kName = kNames[size_t(kForm<Options>)];
  const LayerNormOptions& o = common(call.options);
  const TensorView &x = call.in(), &out = call.out();
  check_x(kName, x, o);
  op::check_like(kName, "out", out, o.out_dtype.value_or(x.dtype()), x.shape());
  if (o.residual) op::check_like(kName, "residual", *o.residual, x.dtype(), x.shape());
  if (o.residual_out) {
    if (!o.residual)
      fail(ErrorKind::value, kName, ": residual_out is x + residual; give residual too");
    op::check_like(kName, "residual_out", *o.residual_out, x.dtype(), x.shape());
  }
  check_vectors(kName, out, x, o);
  check_stats(kName, x, o);
  if (!(o.eps >= 0)) fail(ErrorKind::value, kName, ": eps must be at least 0, got ", o.eps);
  return {.form = kForm<Options>,
          .out = out,
          .x = x,
          .weight = o.weight,
          .bias = o.bias,
          .residual = o.residual,
          .mean = o.mean,
          .rstd = o.rstd,
          .residual_out = o.residual_out,
          .scales = o.scales,
          .eps = o.eps,
          .scale = o.scale.value_or(0),
          .activation = o.activation};
}

op::Cost cost(const Problem& q) {
  const double flops = q.form == Form::layer ? 8 : 4;
  op::Cost c{.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = flops * double(q.x.size())};
  for (const auto* t :
       {&q.weight, &q.bias, &q.residual, &q.mean, &q.rstd, &q.residual_out, &q.scales})
    if (*t) c.bytes += double((*t)->nbytes());
  return c;
}

// Defines what the two operators have in common; `own` are the options that come first.
template <class Options>
op::Definition<Problem, Options> definition(std::string_view summary, std::string_view details,
                                            std::vector<op::Option<Options>> own) {
  own.push_back(op::option("out_dtype", &Options::out_dtype,
                           "float8_e4m3fn, float8_e5m2 or int8: quantise the result"));
  own.push_back(op::option("scale", &Options::scale, "a code is the result / scale"));
  own.push_back(op::option("per_token", &Options::per_token,
                           "a scale of each row's own instead; returns scales too"));
  return {.name = kNames[size_t(kForm<Options>)],
          .group = "normalise",
          .summary = summary,
          .details = details,
          .inputs = {{"x", "the rows to normalise"}},
          .options = own,
          .out_doc = "shape of x, dtype of x or out_dtype",
          .dtypes = {DType::float32, DType::float16, DType::bfloat16},
          .in_place = true,
          .infer = infer<Options>,
          .check = check<Options>,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
}

template <class Options>
op::Option<Options> weight_option() {
  return op::positional(
      op::option("weight", &Options::weight, "(cols,): multiplies the normalised rows"));
}
template <class Options>
op::Option<Options> residual_option() {
  return op::option("residual", &Options::residual,
                    "shape of x: added to x first; returns residual_out too");
}
template <class Options>
op::ExtraOutput<Options> residual_output() {
  return {{"residual_out", "x + residual, where residual is given", "residual"},
          &Options::residual_out};
}

const auto kLayerNorm = [] {
  using Options = LayerNormOptions;
  auto layer_norm = definition<Options>(
      "Layer normalisation over the last axis, with residual addition and activation.",
      "out = activation((h - mean) * rstd * weight + bias) with h = x + residual, mean(h) and "
      "rstd = 1 / sqrt(mean((h - mean)^2) + eps), each row of the last axis on its own. x has any "
      "strides, rank 1 or more, dtype float32, float16 or bfloat16; weight and bias have the "
      "dtype of x or float32. The variance is about the mean, in float32, from h before it is "
      "rounded to residual_out. A row with a NaN or an infinity becomes NaN. "
      "out_dtype quantises the float32 result in the same pass: divided by scale, rounded to "
      "nearest even, saturated, a NaN as int8 is 0; per_token takes a row's largest magnitude "
      "over the largest code (448, 57344, 127), 1 where that is 0.",
      {weight_option<Options>(),
       op::positional(op::option("bias", &Options::bias, "(cols,): added after weight")),
       op::option("eps", &Options::eps, "added to the variance"), residual_option<Options>(),
       op::option("activation", &Options::activation, "applied to the result"),
       op::option("return_stats", &Options::return_stats, "return mean and rstd too")});
  layer_norm.aliases = {"fused_layer_norm_activation"};
  layer_norm.extra_outputs = {
      {{"mean", "float32, shape of x without its last axis", "return_stats"}, &Options::mean},
      {{"rstd", "1 / sqrt(variance + eps), like mean", "return_stats"}, &Options::rstd},
      {{"scales", "where per_token, like mean", "per_token"}, &Options::scales},
      residual_output<Options>()};
  return layer_norm;
}();

const auto kRmsNorm = [] {
  using Options = RmsNormOptions;
  auto rms_norm = definition<Options>(
      "Root mean square normalisation over the last axis, with residual addition.",
      "out = h / sqrt(mean(h^2) + eps) * weight with h = x + residual, each row of the last axis "
      "on its own. x has any strides, rank 1 or more, dtype float32, float16 or bfloat16; weight "
      "has the dtype of x or float32. Computed in float32 from h before it is rounded to "
      "residual_out. A row with a NaN becomes NaN. out_dtype quantises the float32 result in the "
      "same pass: divided by scale, rounded to nearest even, saturated, a NaN as int8 is 0; "
      "per_token takes a row's largest magnitude over the largest code (448, 57344, 127), 1 "
      "where that is 0.",
      {weight_option<Options>(), op::option("eps", &Options::eps, "added to the mean of squares"),
       residual_option<Options>()});
  rms_norm.extra_outputs = {
      {{"scales", "where per_token, float32, shape of x without its last axis", "per_token"},
       &Options::scales},
      residual_output<Options>()};
  return rms_norm;
}();

}  // namespace
}  // namespace kernel::norm

void layer_norm(const TensorView& out, const TensorView& x, const LayerNormOptions& options) {
  op::run(kernel::norm::kLayerNorm, out, {x}, options);
}

LayerNormResult layer_norm(const TensorView& x, const LayerNormOptions& options) {
  auto tensors = op::allocate(kernel::norm::kLayerNorm, {x}, options);
  LayerNormResult result{std::move(tensors[0]), {}, {}, {}, {}};
  if (options.per_token) result.scales = std::move(tensors[options.return_stats ? 3 : 1]);
  if (options.return_stats) {
    result.mean = std::move(tensors[1]);
    result.rstd = std::move(tensors[2]);
  }
  if (options.residual) result.residual_out = std::move(tensors.back());
  return result;
}

void rms_norm(const TensorView& out, const TensorView& x, const RmsNormOptions& options) {
  op::run(kernel::norm::kRmsNorm, out, {x}, options);
}

RmsNormResult rms_norm(const TensorView& x, const RmsNormOptions& options) {
  auto tensors = op::allocate(kernel::norm::kRmsNorm, {x}, options);
  RmsNormResult result{std::move(tensors[0]), {}, {}};
  if (options.per_token) result.scales = std::move(tensors[1]);
  if (options.residual) result.residual_out = std::move(tensors.back());
  return result;
}

op::OperatorList ops::norm() {
  return op::registered(kernel::norm::kLayerNorm, kernel::norm::kRmsNorm);
}

}  // namespace tensorcraft
