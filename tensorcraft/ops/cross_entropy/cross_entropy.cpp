// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cross_entropy/cross_entropy.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/cross_entropy/plan.h"
#include "tensorcraft/ops/cross_entropy/problem.hpp"

#include <cstddef>
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

constexpr ConfigField kFields[] = {{"threads"}, {"group"}, {"loads"}, {"nested"}};
const jit::Rung& kReduce =
    op::make_rung(kName, "reduce", "reduce.cuh", op::kThreads, "ReduceConfig");

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const DType dtype = q.logits.dtype();
  const int last = q.logits.rank() - 1;
  CallParams p =
      with_maps(Params{.logits = q.logits.data(),
                       .targets = q.targets.data(),
                       .out = q.is_reduced() ? nullptr : q.out.data_as<float>(),
                       .lse = data_of<float>(q.lse),
                       .rows = q.rows(),
                       .classes = q.classes(),
                       .class_step = q.logits.stride(last),
                       .ignore_index = q.ignore_index,
                       .ignored = q.ignored()},
                op::row_map(q.logits, last), op::element_map(q.targets),
                q.is_reduced() ? op::contiguous_rows(q.rows(), 1) : op::element_map(q.out),
                q.lse ? op::element_map(*q.lse) : RowMap{});
  return {p, {int(dtype_bytes(dtype)), dtype == DType::float16}, {dtype, q.targets.dtype()}};
}

// Losses that are reduced lie in the plan's workspace, from which a second step makes one number.
void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  if (!q.is_reduced()) return;
  const ReduceParams p{.losses = nullptr,
                       .out = q.out.data_as<float>(),
                       .rows = q.rows(),
                       .mean = q.reduction == LossReduction::mean};
  op::Step& reduce = plan.add(op::make_step(kReduce, {}, reduce_start(p.rows)), p);
  reduce.workspace_at = offsetof(ReduceParams, losses);
  plan.first().workspace_at = offsetof(Params, out);
  plan.workspace_bytes = size_t(p.rows) * sizeof(float);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, vector exponentials, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
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

Dims out_shape(const Dims& rows, const Options& o) {
  return o.reduction == LossReduction::none ? rows : Dims{};
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  const Dims shape = rows_shape(in[0]);
  std::vector<op::OutputSpec> specs{{"out", DType::float32, out_shape(shape, o)}};
  if (o.return_lse) specs.push_back({"lse", DType::float32, shape});
  return specs;
}

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
  op::check_like(kName, "out", call.out(), DType::float32, out_shape(shape, o));
  if (o.lse) op::check_like(kName, "lse", *o.lse, DType::float32, shape);
  return {call.out(), logits, targets, o.lse, o.ignore_index, o.reduction};
}

op::Cost cost(const Problem& q) {
  const size_t lse_bytes = q.lse ? q.lse->nbytes() : 0;
  return {.bytes = double(q.logits.nbytes() + q.targets.nbytes() + q.out.nbytes() + lse_bytes),
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
    .inputs = {{"logits", "(..., classes)"},
               {"targets",
                op::takes(op::kIndexTypes, "%, the shape of logits without its last axis")}},
    .options = {op::option("ignore_index", &Options::ignore_index,
                           "a row with this target has loss 0 and does not count"),
                op::option("reduction", &Options::reduction, "of the losses of all rows"),
                op::option("return_lse", &Options::return_lse,
                           "return (out, lse) with the logarithm of each row's sum")},
    .out_doc = "float32: a number, or the shape of targets where reduction is \"none\"",
    .extra_outputs = {{{"lse", "log(sum(exp(row))), float32, shape of targets", "return_lse"},
                       &Options::lse}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::cross_entropy

void cross_entropy(const TensorView& out, const TensorView& logits, const TensorView& targets,
                   const CrossEntropyOptions& options) {
  op::run(kernel::cross_entropy::kDefinition, out, {logits, targets}, options);
}

CrossEntropyResult cross_entropy(const TensorView& logits, const TensorView& targets,
                                 const CrossEntropyOptions& options) {
  auto tensors = op::allocate(kernel::cross_entropy::kDefinition, {logits, targets}, options);
  CrossEntropyResult result{std::move(tensors[0]), {}};
  if (options.return_lse) result.lse = std::move(tensors[1]);
  return result;
}

op::OperatorList ops::cross_entropy() { return op::registered(kernel::cross_entropy::kDefinition); }

}  // namespace tensorcraft
