// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/cumulative_sum.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/cumulative_sum/cumulative_sum_cpu.hpp"
#include "tensorcraft/ops/cumulative_sum/cumulative_sum_simt.hpp"
#include "tensorcraft/ops/cumulative_sum/plan.h"

#include <cstddef>

namespace tensorcraft {
namespace kernel::cumulative_sum {
namespace {

constexpr std::string_view kName = "cumulative_sum";

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::cumulative_sum::Config{.threads = ", c.threads,
              ", .vector = ", c.vector, ", .wide = ", c.wide, ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::cumulative_sum::Params";
const jit::Rung kNaive{"tensorcraft/ops/cumulative_sum/00_naive.cuh",
                       "tensorcraft::kernel::cumulative_sum::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kRow{"tensorcraft/ops/cumulative_sum/01_row.cuh",
                     "tensorcraft::kernel::cumulative_sum::row", kParams, config_text,
                     row_instances};

Params params(const Problem& q) {
  return {.x = q.x.data(),
          .out = q.out.data(),
          .rows = q.rows(),
          .cols = q.cols(),
          .x_step = q.x.stride(q.axis),
          .out_step = q.out.stride(q.axis),
          .segments = 1,
          .segment_cols = q.cols(),
          .x_rows = op::row_map(q.x, q.axis),
          .out_rows = op::row_map(q.out, q.axis)};
}

op::Plan make_plan(const jit::Rung& rung, const Problem& q, const Planned& planned) {
  op::Plan plan = op::make_plan(rung, {q.x.dtype()}, planned.launch, planned.params);
  plan.workspace_bytes = planned.workspace_bytes;
  plan.workspace_zeroed = planned.workspace_zeroed;
  plan.steps()[0].workspace_at = offsetof(Params, workspace);
  return plan;
}

op::Verdict accepts_naive(const Problem& q, const DeviceInfo&) {
  return op::decline(naive_problem(params(q)));
}
op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  return make_plan(kNaive, q, naive_plan(params(q)));
}
op::Verdict accepts_row(const Problem& q, const DeviceInfo&) {
  return op::decline(row_problem(params(q)));
}
op::Verdict suits_row(const Problem& q, const DeviceInfo&) {
  return op::decline(row_doubt(params(q)));
}
op::Plan plan_row(const Problem& q, const DeviceInfo& device) {
  const DType dtype = q.x.dtype();
  return make_plan(
      kRow, q, row_plan(params(q), is_floating(dtype), int(dtype_bytes(dtype)), device.num_sms));
}
op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

const op::Variant<Problem> kTable[] = {
    {.name = "row",
     .idea = "a block a row or part of one, scans by shuffles",
     .device = DeviceType::cuda,
     .accepts = accepts_row,
     .plan = plan_row,
     .suits = suits_row},
    {.name = "naive",
     .idea = "one thread a row",
     .device = DeviceType::cuda,
     .accepts = accepts_naive,
     .plan = plan_naive},
    {.name = "cpu",
     .idea = "rows over all cores",
     .device = DeviceType::cpu,
     .accepts = always,
     .run = cpu},
    {.name = "reference",
     .idea = "double, obvious loops",
     .device = DeviceType::cpu,
     .accepts = always,
     .run = reference},
};

DType result_dtype(DType dtype) { return is_floating(dtype) ? dtype : DType::int64; }

int axis_of(const TensorView& x, const CumulativeSumOptions& o) {
  op::check_dtype(kName, "x", x,
                  {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::int16,
                   DType::int32, DType::int64, DType::uint8});
  const int rank = x.rank();
  if (rank == 0) fail(ErrorKind::value, kName, ": x must have an axis, got a single number");
  if (!o.axis && rank > 1) fail(ErrorKind::value, kName, ": give axis: x has ", rank, " axes");
  const int64_t axis = o.axis.value_or(0);
  if (axis < -rank || axis >= rank)
    fail(ErrorKind::index, kName, ": axis must be in [", -rank, ", ", rank, "), got ", axis);
  return int(axis < 0 ? axis + rank : axis);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const CumulativeSumOptions& o) {
  axis_of(in[0], o);
  return {{"out", result_dtype(in[0].dtype()), in[0].shape()}};
}

Problem check(const op::Call<CumulativeSumOptions>& call) {
  const TensorView& x = call.in();
  const int axis = axis_of(x, call.options);
  op::check_like(kName, "out", call.out(), result_dtype(x.dtype()), x.shape());
  return {call.out(), x, axis};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = double(q.x.size())};
}

const op::Definition<Problem, CumulativeSumOptions> kDefinition{
    .name = kName,
    .group = "reduce",
    .summary = "The sums of the elements up to each one along an axis.",
    .details =
        "Floats are added in float32, rounded once, and give their dtype; integers give "
        "int64, which "
        "wraps. A NaN makes all that follow it NaN. Results repeat to the bit.",
    .aliases = {},
    .inputs = {{"x", "any shape with an axis, any strides"}},
    .options = {op::positional(op::option("axis", &CumulativeSumOptions::axis,
                                          "along which to add; needed for more than one axis"))},
    .out_doc = "shape of x; dtype of x, or int64",
    .extra_outputs = {},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::int16,
               DType::int32, DType::int64, DType::uint8},
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::cumulative_sum

void cumulative_sum(const TensorView& out, const TensorView& x,
                    const CumulativeSumOptions& options) {
  op::run(kernel::cumulative_sum::kDefinition, out, {x}, options);
}

Tensor cumulative_sum(const TensorView& x, const CumulativeSumOptions& options) {
  return std::move(op::allocate(kernel::cumulative_sum::kDefinition, {x}, options)[0]);
}

op::OperatorList ops::cumulative_sum() {
  static const auto& entry =
      *new op::OperatorOf(kernel::cumulative_sum::kDefinition);  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
