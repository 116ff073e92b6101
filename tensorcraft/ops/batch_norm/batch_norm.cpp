// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/batch_norm/batch_norm.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/batch_norm/plan.h"
#include "tensorcraft/ops/batch_norm/problem.hpp"

namespace tensorcraft {
namespace kernel::batch_norm {
namespace {

constexpr std::string_view kName = "batch_norm", kBackwardName = "batch_norm_backward";

constexpr ConfigField kFields[] = {{"threads"},
                                   {"vector"},
                                   {"slots"},
                                   {"cluster"},
                                   {"activation", op::EnumNames<Activation>::names},
                                   {"training"},
                                   {"whole"},
                                   {"nested"}};

Layout layout_of(const TensorView& t) {
  Dims shape, strides;
  for (int i = 1; i < t.rank(); ++i) {
    shape.push_back(t.shape(i));
    strides.push_back(t.stride(i));
  }
  const TensorView sample = t.at(t.data(), shape, strides);
  return {.batch = t.stride(0), .channel = t.stride(1), .spatial = op::row_map(sample, 0)};
}

Params params(const Problem& q) {
  Params p = contiguous_params({.x = q.x.data(),
                                .weight = data_of(q.weight),
                                .bias = data_of(q.bias),
                                .running_mean = data_of(q.running_mean),
                                .running_var = data_of(q.running_var),
                                .out = q.out.writable_data(),
                                .mean = data_of<float>(q.mean),
                                .rstd = data_of<float>(q.rstd),
                                .running_mean_out = data_of<void>(q.running_mean_out),
                                .running_var_out = data_of<void>(q.running_var_out)},
                               q.x.shape(0), q.x.shape(1), plane_size(q.x), q.eps, q.momentum,
                               q.activation);
  p.x_layout = layout_of(q.x);
  p.out_layout = layout_of(q.out);
  return p;
}

BackwardParams params(const BackwardProblem& q) {
  return {.grad = q.grad.data(),
          .x = q.x.data(),
          .weight = data_of(q.weight),
          .mean = q.mean.data_as<const float>(),
          .rstd = q.rstd.data_as<const float>(),
          .grad_input = q.grad_input.writable_data(),
          .grad_weight = data_of<void>(q.grad_weight),
          .grad_bias = data_of<void>(q.grad_bias),
          .batch = q.x.shape(0),
          .channels = q.x.shape(1),
          .spatial = plane_size(q.x),
          .grad_layout = layout_of(q.grad),
          .x_layout = layout_of(q.x),
          .out_layout = layout_of(q.grad_input)};
}

// The dtype of the vectors that are given.
DType vector_dtype(const Problem& q) {
  for (const auto* t : {&q.running_mean, &q.running_var, &q.weight, &q.bias})
    if (*t) return (*t)->dtype();
  return q.x.dtype();
}
DType vector_dtype(const BackwardProblem& q) {
  return q.weight ? q.weight->dtype() : DType::float32;
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const DType dtype = q.x.dtype();
  return {params(q),
          {.element_bytes = int(dtype_bytes(dtype)), .training = q.training},
          {dtype, vector_dtype(q)}};
}
op::RungCall<BackwardParams, Given> backward_rung_call(const BackwardProblem& q) {
  const DType dtype = q.x.dtype();
  return {params(q), {.element_bytes = int(dtype_bytes(dtype))}, {dtype, vector_dtype(q)}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows or channels over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};
const op::HostVariant<BackwardProblem> kBackwardHost[] = {
    {.name = "cpu", .idea = "float, channels over all cores", .run = backward_cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = backward_reference},
};

void check_x(std::string_view op, const TensorView& x) {
  op::check_dtype(op, "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() < 2)
    fail(ErrorKind::value, op,
         ": x: expected at least 2 dimensions, batch and channels, got shape ", x.shape());
}

// x has channels, so a statistic of each takes values.
void check_count(std::string_view op, const TensorView& x, int64_t least) {
  if (x.shape(1) > 0 && x.size() / x.shape(1) < least)
    fail(ErrorKind::value, op, ": statistics of a channel need at least ", least,
         least == 1 ? " value" : " values", ", got x of shape ", x.shape());
}

// Vectors of one element a channel; those that are given have one of the dtypes, and the same.
class VectorCheck {
 public:
  VectorCheck(std::string_view op, const TensorView& x, bool any_dtype) : op_(op) {
    channels_.set_value(x.shape(1));
    if (any_dtype) dtype_.set_options({x.dtype()});
    if (any_dtype && x.dtype() != DType::float32) dtype_.set_options({x.dtype(), DType::float32});
  }
  void operator()(const OptionalView& t, std::string_view name) {
    if (t) TensorMatcher({channels_}).with_dtype(dtype_).verify(*t, op_, name);
  }

 private:
  std::string_view op_;
  SymbolicSize channels_{"channels"};
  SymbolicDType dtype_{DType::float32};
};

struct Named {
  std::string_view name;
  const OptionalView& view;
};

// An output may be one of these inputs at `allowed` (same name but for "_out"), and lies apart from
// all others: a thread may read them after another has written.
void check_apart(std::string_view op, std::initializer_list<Named> outputs,
                 std::initializer_list<Named> inputs) {
  for (const Named& out : outputs)
    for (const Named& in : inputs) {
      const bool successor = out.name.starts_with(in.name) && out.name.ends_with("_out");
      if (out.view && in.view && !successor)
        op::check_apart(op, out.name, *out.view, in.name, *in.view);
    }
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const BatchNormOptions& o) {
  check_x(kName, in[0]);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), in[0].shape()}};
  if (!o.training) return specs;
  check_count(kName, in[0], 2);
  const Dims channels{in[0].shape(1)};
  for (const auto* name : {"mean", "rstd"}) specs.push_back({name, DType::float32, channels});
  if (o.running_mean) specs.push_back({"running_mean_out", o.running_mean->dtype(), channels});
  if (o.running_var) specs.push_back({"running_var_out", o.running_var->dtype(), channels});
  return specs;
}

void check_vectors(const op::Call<BatchNormOptions>& call) {
  const TensorView& x = call.in();
  const BatchNormOptions& o = call.options;
  VectorCheck parameter(kName, x, true), statistic(kName, x, false);
  parameter(o.running_mean, "running_mean");
  parameter(o.running_var, "running_var");
  parameter(o.weight, "weight");
  parameter(o.bias, "bias");
  parameter(o.running_mean_out, "running_mean_out");
  parameter(o.running_var_out, "running_var_out");
  statistic(o.mean, "mean");
  statistic(o.rstd, "rstd");
  check_apart(kName,
              {{"mean", o.mean},
               {"rstd", o.rstd},
               {"running_mean_out", o.running_mean_out},
               {"running_var_out", o.running_var_out}},
              {{"weight", o.weight},
               {"bias", o.bias},
               {"running_mean", o.running_mean},
               {"running_var", o.running_var}});
}

void check_mode(const op::Call<BatchNormOptions>& call) {
  const BatchNormOptions& o = call.options;
  if (!o.training) {
    if (!o.running_mean || !o.running_var)
      fail(ErrorKind::value, kName,
           ": give running_mean and running_var; without them set "
           "training=True");
    if (o.mean || o.rstd || o.running_mean_out || o.running_var_out)
      fail(ErrorKind::value, kName,
           ": mean, rstd and new running statistics are of training; set "
           "training=True, or give no such output");
    return;
  }
  check_count(kName, call.in(), 2);
  if ((o.running_mean_out && !o.running_mean) || (o.running_var_out && !o.running_var))
    fail(ErrorKind::value, kName,
         ": new running statistics come from old ones; give running_mean "
         "and running_var too");
}

Problem check(const op::Call<BatchNormOptions>& call) {
  const TensorView& x = call.in();
  const BatchNormOptions& o = call.options;
  check_x(kName, x);
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  check_mode(call);
  check_vectors(call);
  if (!(o.eps >= 0)) fail(ErrorKind::value, kName, ": eps must be at least 0, got ", o.eps);
  if (!(o.momentum >= 0 && o.momentum <= 1))
    fail(ErrorKind::value, kName, ": momentum must be in [0, 1], got ", o.momentum);
  return {call.out(), x,      o.running_mean, o.running_var,      o.weight,
          o.bias,     o.mean, o.rstd,         o.running_mean_out, o.running_var_out,
          o.momentum, o.eps,  o.activation,   o.training};
}

std::vector<op::OutputSpec> backward_infer(std::span<const TensorView> in,
                                           const BatchNormBackwardOptions& o) {
  check_x(kBackwardName, in[1]);
  check_count(kBackwardName, in[1], 1);
  const DType dtype = o.weight ? o.weight->dtype() : DType::float32;
  const Dims channels{in[1].shape(1)};
  return {{"grad_input", in[1].dtype(), in[1].shape()},
          {"grad_weight", dtype, channels},
          {"grad_bias", dtype, channels}};
}

BackwardProblem backward_check(const op::Call<BatchNormBackwardOptions>& call) {
  const TensorView &grad = call.in(0), &x = call.in(1);
  const BatchNormBackwardOptions& o = call.options;
  check_x(kBackwardName, x);
  check_count(kBackwardName, x, 1);
  op::check_like(kBackwardName, "grad", grad, x.dtype(), x.shape());
  op::check_like(kBackwardName, "grad_input", call.out(), x.dtype(), x.shape());
  if (!o.mean || !o.rstd)
    fail(ErrorKind::value, kBackwardName,
         ": give mean and rstd, which batch_norm returned "
         "with training=True");
  VectorCheck weight(kBackwardName, x, true), statistic(kBackwardName, x, false);
  weight(o.weight, "weight");
  statistic(o.mean, "mean");
  statistic(o.rstd, "rstd");
  VectorCheck& grads = o.weight ? weight : statistic;
  grads(o.grad_weight, "grad_weight");
  grads(o.grad_bias, "grad_bias");
  check_apart(kBackwardName, {{"grad_weight", o.grad_weight}, {"grad_bias", o.grad_bias}},
              {{"weight", o.weight}, {"mean", o.mean}, {"rstd", o.rstd}});
  return {call.out(), grad, x, *o.mean, *o.rstd, o.weight, o.grad_weight, o.grad_bias};
}

op::Cost cost(const Problem& q) {
  op::Cost c{.bytes = double(q.x.nbytes() + q.out.nbytes()),
             .flops = (q.training ? 6.0 : 2.0) * double(q.x.size())};
  for (const auto* t : {&q.weight, &q.bias, &q.running_mean, &q.running_var, &q.mean, &q.rstd,
                        &q.running_mean_out, &q.running_var_out})
    if (*t) c.bytes += double((*t)->nbytes());
  return c;
}

op::Cost backward_cost(const BackwardProblem& q) {
  return {.bytes = double(q.grad.nbytes() + q.x.nbytes() + q.grad_input.nbytes()),
          .flops = 9.0 * double(q.x.size())};
}

const std::vector<DType> kDTypes = {DType::float32, DType::float16, DType::bfloat16};

using Options = BatchNormOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "normalise",
    .summary = "Batch normalisation of each channel, for inference and training.",
    .details =
        "out = activation((x - mean) / sqrt(variance + eps) * weight + bias), each channel of x, "
        "(batch, channels, ...), on its own. Inference takes the running statistics and folds a "
        "channel's parameters into one factor and one addend, in float32. training=True takes mean "
        "and variance over all axes but 1, without cancellation and the same every time, and "
        "returns them and new running statistics: (1 - momentum) running + momentum of the batch, "
        "the variance with count - 1. Nothing is updated in place. Vectors are (channels,), of one "
        "dtype, that of x or float32. A NaN or an infinity in a channel makes all of it NaN in "
        "training, only itself in inference.",
    .inputs = {{"x", "(batch, channels, ...), any strides"}},
    .options = {op::positional(op::option("running_mean", &Options::running_mean,
                                          "(channels,): needed for inference")),
                op::positional(op::option("running_var", &Options::running_var,
                                          "(channels,): needed for inference")),
                op::positional(op::option("weight", &Options::weight, "(channels,): a factor")),
                op::positional(op::option("bias", &Options::bias, "(channels,): added after it")),
                op::option("training", &Options::training, "use statistics of the batch"),
                op::option("momentum", &Options::momentum,
                           "share of the batch in new running statistics"),
                op::option("eps", &Options::eps, "added to the variance"),
                op::option("activation", &Options::activation, "applied to the result")},
    .out_doc = "shape and dtype of x",
    .extra_outputs =
        {{{"mean", "of training, (channels,) float32", "training"}, &Options::mean},
         {{"rstd", "1 / sqrt(variance + eps), like mean", "training"}, &Options::rstd},
         {{"running_mean_out", "of training, where running_mean is given", "training running_mean"},
          &Options::running_mean_out},
         {{"running_var_out", "of training, where running_var is given", "training running_var"},
          &Options::running_var_out}},
    .dtypes = kDTypes,
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

using BackwardOptions = BatchNormBackwardOptions;
const op::Definition<BackwardProblem, BackwardOptions> kBackwardDefinition{
    .name = kBackwardName,
    .group = "normalise",
    .summary = "Gradients of batch_norm in training.",
    .details =
        "With xhat = (x - mean) rstd and means over all axes but 1: grad_bias = sum(grad), "
        "grad_weight = sum(grad xhat), grad_input = weight rstd (grad - mean(grad) - xhat "
        "mean(grad xhat)); sums in float32, the same every time. grad is the gradient of "
        "batch_norm's result without an activation. A NaN in a channel makes all of it NaN.",
    .inputs = {{"grad", "shape and dtype of x"}, {"x", "(batch, channels, ...), any strides"}},
    .options = {op::positional(op::option("weight", &BackwardOptions::weight,
                                          "(channels,), as in the forward call")),
                op::positional(op::option(
                    "mean", &BackwardOptions::mean,
                    op::takes(op::kFloat32, "(channels,) %, from the forward call; needed"))),
                op::positional(op::option(
                    "rstd", &BackwardOptions::rstd,
                    op::takes(op::kFloat32, "(channels,) %, from the forward call; needed")))},
    .out_name = "grad_input",
    .out_doc = "shape and dtype of x",
    .extra_outputs = {{{"grad_weight", "(channels,), dtype of weight, float32 without one"},
                       &BackwardOptions::grad_weight},
                      {{"grad_bias", "like grad_weight"}, &BackwardOptions::grad_bias}},
    .dtypes = kDTypes,
    .in_place = true,
    .infer = backward_infer,
    .check = backward_check,
    .cost = backward_cost,
    .ladder = op::make_ladder<backward_rung_call, kBackwardRungs>(kName, kFields),
    .host = kBackwardHost};

}  // namespace
}  // namespace kernel::batch_norm

void batch_norm(const TensorView& out, const TensorView& x, const BatchNormOptions& options) {
  op::run(kernel::batch_norm::kDefinition, out, {x}, options);
}

BatchNormResult batch_norm(const TensorView& x, const BatchNormOptions& options) {
  auto tensors = op::allocate(kernel::batch_norm::kDefinition, {x}, options);
  BatchNormResult result{std::move(tensors[0]), {}, {}, {}, {}};
  if (!options.training) return result;
  result.mean = std::move(tensors[1]);
  result.rstd = std::move(tensors[2]);
  if (options.running_mean) result.running_mean_out = std::move(tensors[3]);
  if (options.running_var) result.running_var_out = std::move(tensors.back());
  return result;
}

void batch_norm_backward(const TensorView& grad_input, const TensorView& grad, const TensorView& x,
                         const BatchNormBackwardOptions& options) {
  op::run(kernel::batch_norm::kBackwardDefinition, grad_input, {grad, x}, options);
}

BatchNormBackwardResult batch_norm_backward(const TensorView& grad, const TensorView& x,
                                            const BatchNormBackwardOptions& options) {
  auto tensors = op::allocate(kernel::batch_norm::kBackwardDefinition, {grad, x}, options);
  return {std::move(tensors[0]), std::move(tensors[1]), std::move(tensors[2])};
}

op::OperatorList ops::batch_norm() {
  namespace b = kernel::batch_norm;
  return op::registered(b::kDefinition, b::kBackwardDefinition);
}

}  // namespace tensorcraft
