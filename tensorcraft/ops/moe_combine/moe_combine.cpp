// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_combine/moe_combine.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/moe_combine/plan.h"
#include "tensorcraft/ops/moe_combine/problem.hpp"

namespace tensorcraft {
namespace kernel::moe_combine {

Params params(const Problem& q) {
  const auto& [out, y, row_map, weights] = q;
  return {.y = y.data(),
          .row_map = row_map.data_as<const int32_t>(),
          .weights = weights.data_as<const float>(),
          .out = out.writable_data(),
          .tokens = row_map.shape(0),
          .k = row_map.shape(1),
          .hidden = y.shape(1),
          .rows = y.shape(0),
          .y_strides = {y.stride(0), y.stride(1)},
          .map_strides = {row_map.stride(0), row_map.stride(1)},
          .weights_strides = {weights.stride(0), weights.stride(1)},
          .out_strides = {out.stride(0), out.stride(1)}};
}

namespace {

constexpr std::string_view kName = "moe_combine";

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {params(q), {int(dtype_bytes(q.y.dtype()))}, {q.y.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, tokens over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const MoeCombineOptions&) {
  SymbolicSize hidden("hidden"), tokens("tokens"), k("k");
  TensorMatcher({kAnySize, hidden})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16})
      .verify(in[0], kName, "y");
  TensorMatcher({tokens, k})
      .with_any_strides()
      .with_dtype({DType::int32})
      .verify(in[1], kName, "row_map");
  TensorMatcher({tokens, k})
      .with_any_strides()
      .with_dtype({DType::float32})
      .verify(in[2], kName, "weights");
  return {{"out", in[0].dtype(), {tokens.unwrap(), hidden.unwrap()}}};
}

Problem check(const op::Call<MoeCombineOptions>& call) {
  const op::OutputSpec result = infer(call.inputs, call.options)[0];
  op::check_like(kName, "out", call.out(), result.dtype, result.shape);
  return {call.out(), call.in(0), call.in(1), call.in(2)};
}

// Each slot has a row of its own, of which y may have more.
op::Cost cost(const Problem& q) {
  const double elements = double(q.row_map.size()) * double(q.y.shape(1));
  return {.bytes = elements * double(dtype_bytes(q.y.dtype())) + double(q.out.nbytes()) +
                   double(q.row_map.nbytes() + q.weights.nbytes()),
          .flops = 2 * elements};
}

const op::Definition<Problem, MoeCombineOptions> kDefinition{
    .name = kName,
    .group = "mixture of experts",
    .summary = "The weighted sum of the rows that experts made of each token.",
    .details =
        "out[t, :] = sum over slots s of weights[t, s] * y[row_map[t, s], :], in the order of "
        "slots and in float32, rounded once: the same bits whatever else is in the batch. A slot "
        "with a negative row adds nothing. A row past the last is an IndexError on the CPU; on a "
        "GPU it adds nothing. Strides are free.",
    .inputs = {{"y", op::takes(op::kFloatTypes, "(rows, hidden): %")},
               {"row_map",
                op::takes(op::kInt32, "%, (tokens, k), as moe_permute and moe_sort give it")},
               {"weights", op::takes(op::kFloat32, "%, (tokens, k), as moe_router gives them")}},
    .out_doc = "(tokens, hidden), dtype of y",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, op::kThreads),
    .host = kHost};

}  // namespace
}  // namespace kernel::moe_combine

void moe_combine(const TensorView& out, const TensorView& y, const TensorView& row_map,
                 const TensorView& weights, const MoeCombineOptions& options) {
  op::run(kernel::moe_combine::kDefinition, out, {y, row_map, weights}, options);
}

Tensor moe_combine(const TensorView& y, const TensorView& row_map, const TensorView& weights,
                   const MoeCombineOptions& options) {
  return std::move(
      op::allocate(kernel::moe_combine::kDefinition, {y, row_map, weights}, options)[0]);
}

op::OperatorList ops::moe_combine() { return op::registered(kernel::moe_combine::kDefinition); }

}  // namespace tensorcraft
