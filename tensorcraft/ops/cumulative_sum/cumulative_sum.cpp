// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/cumulative_sum.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/output_type.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/cumulative_sum/plan.h"
#include "tensorcraft/ops/cumulative_sum/problem.hpp"

#include <cstddef>

namespace tensorcraft {
namespace kernel::cumulative_sum {
namespace {

constexpr std::string_view kName = "cumulative_sum";

constexpr ConfigField kFields[] = {{"threads"}, {"vector"}, {"wide"}, {"nested"}, {"converts"}};

DType own_dtype(DType x) { return is_floating(x) ? x : DType::int64; }

// Where the sums begin, also if there are none after the 0.
void* sums_of(const Problem& q) {
  if (!q.initial) return q.out.writable_data();
  const int64_t bytes = q.out.stride(q.axis) * int64_t(dtype_bytes(q.out.dtype()));
  return q.initial->data_as<std::byte>() + bytes;
}

Params params(const Problem& q) {
  return {.x = q.x.data(),
          .out = sums_of(q),
          .rows = q.rows(),
          .cols = q.cols(),
          .x_step = q.x.stride(q.axis),
          .out_step = q.out.stride(q.axis),
          .segments = 1,
          .segment_cols = q.cols(),
          .x_rows = op::row_map(q.x, q.axis),
          .out_rows = op::row_map(q.initial.value_or(q.out), q.axis),
          .out_type = op::output_type(q.out.dtype(), own_dtype(q.x.dtype())),
          .initial = q.initial.has_value()};
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const DType dtype = q.x.dtype();
  const Params p = params(q);
  return {p,
          {.is_float = is_floating(dtype),
           .element_bytes = int(dtype_bytes(dtype)),
           .converts = p.out_type != OutputType::own},
          {dtype}};
}

// What the segments of rows tell each other lies in a workspace.
void complete(op::Plan& plan, std::string_view, const Problem&, const DeviceInfo&) {
  const auto& p = plan.params_as<Params>(plan.first());
  plan.workspace_bytes = workspace_bytes(p);
  plan.workspace_zeroed = workspace_zeroed(p);
  plan.first().workspace_at = offsetof(Params, workspace);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

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

op::OutputSpec result(const TensorView& x, const CumulativeSumOptions& o, int axis) {
  Dims shape = x.shape();
  if (o.include_initial) ++shape[axis];
  const DType dtype = o.dtype ? op::asked_dtype(kName, x.dtype(), *o.dtype) : own_dtype(x.dtype());
  return {"out", dtype, shape};
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const CumulativeSumOptions& o) {
  return {result(in[0], o, axis_of(in[0], o))};
}

Problem check(const op::Call<CumulativeSumOptions>& call) {
  const TensorView& x = call.in();
  const int axis = axis_of(x, call.options);
  const op::OutputSpec spec = result(x, call.options, axis);
  const TensorView& out = call.out();
  op::check_like(kName, "out", out, spec.dtype, spec.shape);
  if (!call.options.include_initial) return {out, x, axis};
  return {out.slice(axis, 1, spec.shape[axis]), x, axis, out.slice(axis, 0, 1)};
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
        "int64, which wraps. dtype is another type of the result: a float, or of integers an "
        "integer, which keeps the low bits. A NaN makes all that follow it NaN. Results repeat to "
        "the bit. "
        "out may be x.",
    .inputs = {{"x", "any shape with an axis, any strides"}},
    .options = {op::positional(op::option("axis", &CumulativeSumOptions::axis,
                                          "along which to add; needed for more than one axis")),
                op::option("dtype", &CumulativeSumOptions::dtype,
                           "of the result; None: that of floats, int64 of integers"),
                op::option("include_initial", &CumulativeSumOptions::include_initial,
                           "a 0 comes first, and the axis is one longer")},
    .out_doc = "shape of x, one longer with include_initial; dtype of x, int64 or `dtype`",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::int16,
               DType::int32, DType::int64, DType::uint8},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, instances, complete>("cumulative_sum", kFields),
    .host = kHost};

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
  return op::registered(kernel::cumulative_sum::kDefinition);
}

}  // namespace tensorcraft
