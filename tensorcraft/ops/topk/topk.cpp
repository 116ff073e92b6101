// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/topk/topk.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/topk/plan.h"
#include "tensorcraft/ops/topk/problem.hpp"

namespace tensorcraft {
namespace kernel::topk {
namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"slots"}, {"nested"}};

Params params(const Problem& q) {
  Params p{.x = q.x.data(),
           .out = q.out.writable_data(),
           .rows = q.rows(),
           .cols = q.cols(),
           .k = q.k,
           .x_step = q.x.stride(q.axis),
           .out_step = q.out.stride(q.axis),
           .x_rows = op::row_map(q.x, q.axis),
           .out_rows = op::row_map(q.out, q.axis)};
  if (!q.indices) return p;
  p.indices = q.indices->data_as<int64_t>();
  p.indices_step = q.indices->stride(q.axis);
  p.indices_rows = op::row_map(*q.indices, q.axis);
  return p;
}

op::RungCall<Params, op::NoGiven> rung_call(const Problem& q) {
  return {params(q), {}, {q.x.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "rows over all cores, the best kept sorted", .run = cpu},
    {.name = "reference", .idea = "a stable sort of every row", .run = reference},
};

Dims result_shape(const TensorView& x, const TopkOptions& o, int& axis) {
  op::check_dtype("topk", "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() == 0) fail(ErrorKind::axis, "topk: x must have an axis, got a single number");
  axis = normalize_axis(o.axis, x.rank(), "topk");
  if (o.k < 0 || o.k > kMaxK || o.k > x.shape(axis))
    fail(ErrorKind::value, "topk: k must be in [0, ", std::min(int64_t(kMaxK), x.shape(axis)),
         "], at most ", kMaxK, " and the size of axis ", axis, ", got ", o.k);
  Dims shape = x.shape();
  shape[axis] = o.k;
  return shape;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const TopkOptions& o) {
  int axis = 0;
  const Dims shape = result_shape(in[0], o, axis);
  return {{"out", in[0].dtype(), shape}, {"indices", DType::int64, shape}};
}

Problem check(const op::Call<TopkOptions>& call) {
  int axis = 0;
  TensorView x = call.in();
  const Dims shape = result_shape(x, call.options, axis);
  op::check_like("topk", "out", call.out(), x.dtype(), shape);
  if (const auto& indices = call.options.indices)
    op::check_like("topk", "indices", *indices, DType::int64, shape);
  // Without a stride all are equal, and the first come first.
  if (x.stride(axis) == 0) x = x.slice(axis, 0, call.options.k);
  return {call.out(), x, call.options.indices, axis, call.options.k};
}

op::Cost cost(const Problem& q) {
  const size_t indices = q.indices ? q.indices->nbytes() : 0;
  return {.bytes = double(q.x.nbytes() + q.out.nbytes() + indices), .flops = double(q.x.size())};
}

const op::Definition<Problem, TopkOptions> kDefinition{
    .name = "topk",
    .group = "reduce",
    .summary = "The k largest elements along an axis, and where they are.",
    .details =
        "The largest first; of equals the lower index comes first, zeros of both signs are equal, "
        "and a NaN is larger than any number. k is at most 64 and at most the size of the axis.",
    .inputs = {{"x", "any shape with an axis, any strides"}},
    .options = {op::positional(op::option("k", &TopkOptions::k, "how many, 0 to 64")),
                op::option("axis", &TopkOptions::axis, "along which elements compete")},
    .out_doc = "shape of x with k along the axis, dtype of x",
    .extra_outputs = {{{"indices", "int64, where each of out is along the axis of x"},
                       &TopkOptions::indices}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>("topk", kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::topk

void topk(const TensorView& out, const TensorView& x, const TopkOptions& options) {
  op::run(kernel::topk::kDefinition, out, {x}, options);
}

TopkResult topk(const TensorView& x, const TopkOptions& options) {
  auto tensors = op::allocate(kernel::topk::kDefinition, {x}, options);
  return {std::move(tensors[0]), std::move(tensors[1])};
}

op::OperatorList ops::topk() { return op::registered(kernel::topk::kDefinition); }

}  // namespace tensorcraft
