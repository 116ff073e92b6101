// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cross_entropy/cross_entropy.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/cross_entropy/cross_entropy_cpu.hpp"
#include "tensorcraft/ops/cross_entropy/cross_entropy_simt.hpp"
#include "tensorcraft/ops/cross_entropy/plan.h"
#include "tensorcraft/runtime/memory/workspace.hpp"

#include <utility>

namespace tensorcraft {

template <>
struct op::EnumNames<LossReduction> {
  static constexpr std::array<std::string_view, 3> names = {"mean", "sum", "none"};
};

namespace kernel::cross_entropy {
namespace {

using Options = CrossEntropyOptions;
constexpr std::string_view kName = "cross_entropy";

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::cross_entropy::Config{.threads = ", c.threads,
              ", .group = ", c.group, ", .loads = ", c.loads, ", .nested = ", c.nested, "}");
}

std::string reduce_config_text(const void* config) {
  return join("tensorcraft::kernel::cross_entropy::ReduceConfig{.threads = ",
              static_cast<const ReduceConfig*>(config)->threads, "}");
}

constexpr std::string_view kParams =
    "tensorcraft::ParamsOf<tensorcraft::kernel::cross_entropy::Params, Config>";
const jit::Rung kNaive{"tensorcraft/ops/cross_entropy/00_naive.cuh",
                       "tensorcraft::kernel::cross_entropy::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kOnline{"tensorcraft/ops/cross_entropy/01_online.cuh",
                        "tensorcraft::kernel::cross_entropy::online", kParams, config_text,
                        online_instances};
const jit::Rung kReduce{
    "tensorcraft/ops/cross_entropy/reduce.cuh", "tensorcraft::kernel::cross_entropy::reduce",
    "tensorcraft::kernel::cross_entropy::ReduceParams", reduce_config_text, reduce_instances};

Params params(const Problem& q) {
  const int last = q.logits.rank() - 1;
  Params p{.logits = q.logits.data(),
           .targets = q.targets.data(),
           .out = q.out.data_as<float>(),
           .rows = q.rows(),
           .classes = q.classes(),
           .class_step = q.logits.stride(last),
           .ignore_index = q.ignore_index,
           .ignored = q.ignored,
           .maps = row_maps(op::row_map(q.logits, last), op::element_map(q.targets),
                            op::element_map(q.out), RowMap{})};
  if (q.lse) {
    p.lse = q.lse->data_as<float>();
    p.maps.set(Params::kLse, op::element_map(*q.lse));
  }
  return p;
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.logits.dtype(), q.targets.dtype()}, naive_launch(p), p);
}

op::Plan plan_online(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  const DType dtype = q.logits.dtype();
  const auto launch = online_launch(p, int(dtype_bytes(dtype)), dtype == DType::float16);
  return op::make_plan(kOnline, {dtype, q.targets.dtype()}, launch, p);
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_naive(const Problem& q, const DeviceInfo&) {
  return op::decline(naive_problem(params(q)));
}

op::Verdict accepts_online(const Problem& q, const DeviceInfo&) {
  return op::decline(online_problem(params(q)));
}

const op::Variant<Problem> kTable[] = {
    {.name = "online",
     .idea = "a warp or a block reads a row once, 4 accesses of 16 bytes in flight a thread",
     .device = DeviceType::cuda,
     .accepts = accepts_online,
     .plan = plan_online,
     .reason = "512 threads share a long row: fewer, and its end is waited for more often"},
    {.name = "naive",
     .idea = "one thread a row, any strides",
     .device = DeviceType::cuda,
     .accepts = accepts_naive,
     .plan = plan_naive},
    {.name = "cpu",
     .idea = "float, vector exponentials, rows over all cores",
     .device = DeviceType::cpu,
     .accepts = always,
     .run = cpu},
    {.name = "reference",
     .idea = "double, obvious loops",
     .device = DeviceType::cpu,
     .accepts = always,
     .run = reference},
};

// The shape of the targets.
Dims rows_shape(const TensorView& logits) {
  op::check_dtype(kName, "logits", logits, {DType::float32, DType::float16, DType::bfloat16});
  if (logits.rank() == 0)
    fail(ErrorKind::value, kName,
         ": logits: expected at least 1 dimension, the classes, got shape ", logits.shape());
  Dims shape;
  for (int i = 0; i + 1 < logits.rank(); ++i) shape.push_back(logits.shape(i));
  return shape;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  const Dims shape = rows_shape(in[0]);
  std::vector<op::OutputSpec> specs{
      {"out", DType::float32, o.reduction == LossReduction::none ? shape : Dims{}}};
  if (o.return_lse) specs.push_back({"lse", DType::float32, shape});
  return specs;
}

// Of the losses of all rows, which is what the table's rows compute.
Problem check(const op::Call<Options>& call) {
  const TensorView &logits = call.in(0), &targets = call.in(1);
  const Options& o = call.options;
  const Dims shape = rows_shape(logits);
  constexpr int64_t kTooMany = int64_t(1) << 30;  // a view may repeat elements without end
  if (logits.shape(logits.rank() - 1) >= kTooMany)
    fail(ErrorKind::unsupported, kName,
         ": logits: there must be fewer than 2^30 classes, got shape ", logits.shape());
  op::check_dtype(kName, "targets", targets, {DType::int32, DType::int64});
  op::check_like(kName, "targets", targets, targets.dtype(), shape);
  op::check_like(kName, "out", call.out(), DType::float32, shape);
  if (o.lse) op::check_like(kName, "lse", *o.lse, DType::float32, shape);
  const float ignored = o.reduction == LossReduction::none ? 0.0f : -0.0f;
  return {call.out(), logits, targets, o.lse, o.ignore_index, ignored};
}

op::Cost cost(const Problem& q) {
  const double numbers = double(q.rows()) * (q.lse ? 2 : 1);
  return {.bytes = double(q.logits.nbytes() + q.targets.nbytes()) + 4 * numbers,
          .flops = 4.0 * double(q.logits.size())};
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "normalise",
    .summary = "Cross-entropy of logits with the index of the right class.",
    .details =
        "The loss of a row is log(sum(exp(row))) - row[target], along the last axis of logits; the "
        "mean is over the rows that are not ignored, NaN where there are none, and sums are always "
        "taken in one order. logits have any strides, rank 1 or more, dtype float32, float16 or "
        "bfloat16; computed in float32. A target that is neither a class nor ignore_index is an "
        "IndexError on the CPU; on a GPU its loss is NaN, and nothing outside the row is read. The "
        "loss of a row with a NaN or +inf, or of nothing but -inf, is NaN.",
    .aliases = {},
    .inputs = {{"logits", "(..., classes)"},
               {"targets", "int32 or int64, the shape of logits without its last axis"}},
    .options = {op::option("ignore_index", &Options::ignore_index,
                           "a row with this target has loss 0 and does not count"),
                op::option("reduction", &Options::reduction, "of the losses of all rows"),
                op::option("return_lse", &Options::return_lse,
                           "return (out, lse) with the logarithm of each row's sum")},
    .out_doc = "float32: a number, or the shape of targets where reduction is \"none\"",
    .extra_outputs = {{{"lse", "log(sum(exp(row))), float32, shape of targets"}, &Options::lse}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

// What the losses' own call does not see: the one number they become.
void check_reduced(const TensorView& out, std::span<const TensorView> inputs, const Options& o) {
  op::check_like(kName, "out", out, DType::float32, {});
  op::NamedTensors outputs, all;
  outputs.add("out", out);
  if (o.lse) outputs.add("lse", *o.lse);
  for (size_t i = 0; i < inputs.size(); ++i) all.add(kDefinition.inputs[i].name, inputs[i]);
  op::check_tensors(kName, outputs, all, false);
}

void run(const TensorView& out, const TensorView& logits, const TensorView& targets, Options o) {
  const TensorView inputs[] = {logits, targets};
  const LossReduction reduction = o.reduction;
  if (reduction == LossReduction::none) return op::run(kDefinition, {&out, 1}, inputs, o);
  check_reduced(out, inputs, o);
  o.stream = op::resolve_stream(o.stream, out.device());
  const Workspace losses(DType::float32, rows_shape(logits), out.device(), *o.stream);
  const ReduceParams p{.losses = losses.view().data_as<float>(),
                       .out = out.data_as<float>(),
                       .rows = losses.view().size(),
                       .mean = reduction == LossReduction::mean};
  const op::Plan into_one = op::make_plan(kReduce, {}, reduce_launch(p.rows), p);
  std::future<void> ahead;
  if (out.device().is_cuda())
    ahead = jit::load_ahead(into_one.first().kernel, out.device(), *o.stream);
  op::run(kDefinition, {&losses.view(), 1}, inputs, o);
  if (out.device().type == DeviceType::cpu) return reduce_on_host(p);
  op::launch_plan(into_one, out.device(), *o.stream, kName);
}

// The registry's face. Where losses are reduced explain() shows the launch that computes them.
class Face final : public op::Operator {
 public:
  Face() : Face(*new op::OperatorOf(kDefinition)) {}  // leaked, as Kept is

  std::vector<op::OutputSpec> infer(const op::Arguments& a) const override {
    return rows_.infer(a);
  }
  void run(std::span<const TensorView> outputs, const op::Arguments& a) const override {
    const auto specs = rows_.infer(a);
    if (outputs.empty() || outputs.size() > specs.size())
      fail(ErrorKind::type, kName, ": takes 1 to ", specs.size(), " outputs, got ", outputs.size());
    Options o = options(a);
    if (outputs.size() > 1) o.lse.emplace(outputs[1]);
    cross_entropy::run(outputs[0], a.inputs[0], a.inputs[1], o);
  }
  op::Explanation explain(std::span<const TensorView> outputs, const op::Arguments& a,
                          const DeviceInfo& device) const override {
    if (outputs.empty() || options(a).reduction == LossReduction::none)
      return rows_.explain(outputs, a, device);
    op::check_like(kName, "out", outputs[0], DType::float32, {});
    std::vector<TensorView> each(outputs.begin(), outputs.end());
    each[0] = {outputs[0].data(), DType::float32, rows_shape(a.inputs[0]), outputs[0].device()};
    return rows_.explain(each, a, device);
  }

 private:
  explicit Face(const op::Operator& rows) : Operator(rows.description()), rows_(rows) {}

  static Options options(const op::Arguments& a) {
    Options o;
    for (size_t i = 0; i < a.options.size(); ++i)
      kDefinition.options[i].set(kName, o, a.options[i]);
    o.variant = a.variant;
    o.stream = a.stream;
    return o;
  }

  const op::Operator& rows_;
};

}  // namespace
}  // namespace kernel::cross_entropy

void cross_entropy(const TensorView& out, const TensorView& logits, const TensorView& targets,
                   const CrossEntropyOptions& options) {
  kernel::cross_entropy::run(out, logits, targets, options);
}

CrossEntropyResult cross_entropy(const TensorView& logits, const TensorView& targets,
                                 const CrossEntropyOptions& options) {
  CrossEntropyOptions o = options;
  const TensorView inputs[] = {logits, targets};
  const auto specs = kernel::cross_entropy::infer(inputs, o);
  o.stream = op::resolve_stream(o.stream, logits.device());
  CrossEntropyResult result{{specs[0].dtype, specs[0].shape, logits.device(), *o.stream}, {}};
  if (o.return_lse) {
    result.lse.emplace(specs[1].dtype, specs[1].shape, logits.device(), *o.stream);
    o.lse.emplace(*result.lse);
  }
  kernel::cross_entropy::run(result.out, logits, targets, o);
  return result;
}

op::OperatorList ops::cross_entropy() {
  static const auto& entry = *new kernel::cross_entropy::Face;  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
