// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/batch_norm/batch_norm.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/batch_norm/batch_norm_cpu.hpp"
#include "tensorcraft/ops/batch_norm/batch_norm_simt.hpp"
#include "tensorcraft/ops/batch_norm/params.h"
#include "tensorcraft/ops/batch_norm/plan.h"

namespace tensorcraft {
namespace kernel::batch_norm {
namespace {

constexpr std::string_view kName = "batch_norm", kBackwardName = "batch_norm_backward";

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::batch_norm::Config{.threads = ", c.threads,
              ", .vector = ", c.vector, ", .slots = ", c.slots, ", .cluster = ", c.cluster,
              ", .activation = tensorcraft::Activation::",
              op::EnumNames<Activation>::names[size_t(c.activation)], ", .training = ", c.training,
              ", .whole = ", c.whole, ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::batch_norm::Params",
                           kBackwardParams = "tensorcraft::kernel::batch_norm::BackwardParams";
const jit::Rung kNaive{"tensorcraft/ops/batch_norm/00_naive.cuh",
                       "tensorcraft::kernel::batch_norm::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kPlanes{"tensorcraft/ops/batch_norm/01_planes.cuh",
                        "tensorcraft::kernel::batch_norm::planes", kParams, config_text,
                        planes_instances};
const jit::Rung kChannelsLast{"tensorcraft/ops/batch_norm/02_channels_last.cuh",
                              "tensorcraft::kernel::batch_norm::channels_last", kParams,
                              config_text, channels_last_instances};
const jit::Rung kCluster{"tensorcraft/ops/batch_norm/03_cluster.cuh",
                         "tensorcraft::kernel::batch_norm::cluster", kParams, config_text,
                         cluster_instances};
const jit::Rung kBackwardNaive{"tensorcraft/ops/batch_norm/04_backward_naive.cuh",
                               "tensorcraft::kernel::batch_norm::backward_naive", kBackwardParams,
                               config_text, backward_naive_instances};
const jit::Rung kBackwardCluster{"tensorcraft/ops/batch_norm/05_backward_cluster.cuh",
                                 "tensorcraft::kernel::batch_norm::backward_cluster",
                                 kBackwardParams, config_text, backward_cluster_instances};

Layout layout_of(const TensorView& t) {
  Dims shape, strides;
  for (int i = 1; i < t.rank(); ++i) {
    shape.push_back(t.shape(i));
    strides.push_back(t.stride(i));
  }
  const TensorView sample(t.data(), t.dtype(), shape, strides, t.device());
  return {.batch = t.stride(0), .channel = t.stride(1), .spatial = op::row_map(sample, 0)};
}

template <class T = void>
T* data_of(const OptionalView& t) {
  return t ? t->data_as<T>() : nullptr;
}

Params params(const Problem& q) {
  Params p = contiguous_params({.x = q.x.data(),
                                .weight = data_of(q.weight),
                                .bias = data_of(q.bias),
                                .running_mean = data_of(q.running_mean),
                                .running_var = data_of(q.running_var),
                                .out = q.out.data(),
                                .mean = data_of<float>(q.mean),
                                .rstd = data_of<float>(q.rstd),
                                .running_mean_out = data_of(q.running_mean_out),
                                .running_var_out = data_of(q.running_var_out)},
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
          .mean = q.mean.data_as<float>(),
          .rstd = q.rstd.data_as<float>(),
          .grad_input = q.grad_input.data(),
          .grad_weight = data_of(q.grad_weight),
          .grad_bias = data_of(q.grad_bias),
          .batch = q.x.shape(0),
          .channels = q.x.shape(1),
          .spatial = plane_size(q.x),
          .grad_layout = layout_of(q.grad),
          .x_layout = layout_of(q.x),
          .out_layout = layout_of(q.grad_input)};
}

template <class P>
int element_bytes(const P& q) {
  return int(dtype_bytes(q.x.dtype()));
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

bool has_clusters(const DeviceInfo& device) { return device.compute_capability >= 90; }

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.x.dtype(), vector_dtype(q)}, naive_launch(p, q.training), p);
}

op::Plan plan_planes(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kPlanes, {q.x.dtype(), vector_dtype(q)}, planes_launch(p, element_bytes(q)),
                       p);
}

op::Plan plan_channels_last(const Problem& q, const DeviceInfo& device) {
  const Params p = params(q);
  return op::make_plan(kChannelsLast, {q.x.dtype(), vector_dtype(q)},
                       channels_last_launch(p, element_bytes(q), device.num_sms), p);
}

op::Plan plan_cluster(const Problem& q, const DeviceInfo& device) {
  const Params p = params(q);
  return op::make_plan(kCluster, {q.x.dtype(), vector_dtype(q)},
                       cluster_launch(p, element_bytes(q), device.num_sms, has_clusters(device)),
                       p);
}

op::Plan plan_backward_naive(const BackwardProblem& q, const DeviceInfo&) {
  const BackwardParams p = params(q);
  return op::make_plan(kBackwardNaive, {q.x.dtype(), vector_dtype(q)}, backward_naive_launch(p), p);
}

op::Plan plan_backward_cluster(const BackwardProblem& q, const DeviceInfo& device) {
  const BackwardParams p = params(q);
  return op::make_plan(
      kBackwardCluster, {q.x.dtype(), vector_dtype(q)},
      backward_cluster_launch(p, element_bytes(q), device.num_sms, has_clusters(device)), p);
}

template <class P>
op::Verdict always(const P&, const DeviceInfo&) {
  return op::accept;
}

op::Verdict accepts_planes(const Problem& q, const DeviceInfo&) {
  if (q.training) return op::decline("needs training=False");
  return op::decline(planes_problem(params(q), element_bytes(q)));
}

op::Verdict accepts_channels_last(const Problem& q, const DeviceInfo&) {
  if (q.training) return op::decline("needs training=False");
  return op::decline(channels_last_problem(params(q), element_bytes(q)));
}

op::Verdict accepts_cluster(const Problem& q, const DeviceInfo&) {
  return q.training ? op::accept : op::decline("needs training=True");
}

const op::Variant<Problem> kTable[] = {
    {"planes", "parameters folded once a block; one read, one write, 16-byte accesses",
     DeviceType::cuda, accepts_planes, nullptr, plan_planes},
    {"channels_last", "a thread keeps its channels: one read, one write, 16-byte accesses",
     DeviceType::cuda, accepts_channels_last, nullptr, plan_channels_last},
    {"cluster", "training: the blocks of a cluster share a channel; two reads, one write",
     DeviceType::cuda, accepts_cluster, nullptr, plan_cluster},
    {"naive", "one thread an element, in training a channel; any strides", DeviceType::cuda,
     always<Problem>, nullptr, plan_naive},
    {"cpu", "float, rows or channels over all cores", DeviceType::cpu, always<Problem>, cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always<Problem>, reference},
};

const op::Variant<BackwardProblem> kBackwardTable[] = {
    {"cluster", "the blocks of a cluster share a channel; two reads, one write, 16-byte accesses",
     DeviceType::cuda, always<BackwardProblem>, nullptr, plan_backward_cluster},
    {"naive", "one thread a channel; any strides", DeviceType::cuda, always<BackwardProblem>,
     nullptr, plan_backward_naive},
    {"cpu", "float, channels over all cores", DeviceType::cpu, always<BackwardProblem>,
     backward_cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always<BackwardProblem>,
     backward_reference},
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
      if (!out.view || !in.view || !may_overlap(*out.view, *in.view)) continue;
      const bool successor = out.name.starts_with(in.name) && out.name.ends_with("_out");
      if (!successor)
        fail(ErrorKind::value, op, ": ", out.name, " overlaps the memory of ", in.name,
             "; give it memory of its own");
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
    .aliases = {},
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
    .extra_outputs = {{{"mean", "of training, (channels,) float32"}, &Options::mean},
                      {{"rstd", "1 / sqrt(variance + eps), like mean"}, &Options::rstd},
                      {{"running_mean_out", "of training, where running_mean is given"},
                       &Options::running_mean_out},
                      {{"running_var_out", "of training, where running_var is given"},
                       &Options::running_var_out}},
    .dtypes = kDTypes,
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

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
    .aliases = {},
    .inputs = {{"grad", "shape and dtype of x"}, {"x", "(batch, channels, ...), any strides"}},
    .options = {op::positional(op::option("weight", &BackwardOptions::weight,
                                          "(channels,), as in the forward call")),
                op::positional(op::option("mean", &BackwardOptions::mean,
                                          "(channels,) float32, from the forward call; needed")),
                op::positional(op::option("rstd", &BackwardOptions::rstd,
                                          "(channels,) float32, from the forward call; needed"))},
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
    .table = kBackwardTable};

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
  // Leaked, as Kept is.
  static const auto& forward = *new op::OperatorOf(kernel::batch_norm::kDefinition);
  static const auto& backward = *new op::OperatorOf(kernel::batch_norm::kBackwardDefinition);
  return {&forward, &backward};
}

}  // namespace tensorcraft
