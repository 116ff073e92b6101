// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/masked_mean/problem.hpp"

namespace tensorcraft {
namespace kernel::masked_mean {
namespace {

op::RungCall<Params, op::NoGiven> rung_call(const Problem& q) {
  const auto& [out, x, lengths] = q;
  return {Params{.x = x.data(),
                 .lengths = lengths.data(),
                 .out = out.writable_data(),
                 .batch = x.shape(0),
                 .steps = x.shape(1),
                 .cols = x.shape(2),
                 .x_strides = {x.stride(0), x.stride(1), x.stride(2)},
                 .lengths_stride = lengths.stride(0),
                 .out_strides = {out.stride(0), out.stride(1)}},
          {},
          {x.dtype(), lengths.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, sequences over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const MaskedMeanOptions&) {
  SymbolicSize batch("batch"), cols("dim");
  TensorMatcher({batch, kAnySize, cols})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16})
      .verify(in[0], "masked_mean", "x");
  TensorMatcher({batch})
      .with_any_strides()
      .with_dtype({DType::int32, DType::int64})
      .verify(in[1], "masked_mean", "lengths");
  return {{"out", in[0].dtype(), {batch.unwrap(), cols.unwrap()}}};
}

Problem check(const op::Call<MaskedMeanOptions>& call) {
  const op::OutputSpec result = infer(call.inputs, call.options)[0];
  op::check_like("masked_mean", "out", call.out(), result.dtype, result.shape);
  return {call.out(), call.in(0), call.in(1)};
}

const op::Definition<Problem, MaskedMeanOptions> kDefinition{
    .name = "masked_mean",
    .group = "reduce",
    .summary = "The mean over the first lengths[b] steps of each sequence.",
    .details =
        "out[b, :] = sum(x[b, 0 .. lengths[b], :]) / lengths[b], zeros where the length is 0. Sums "
        "are float32; steps beyond a length are not read. A length outside [0, steps] is a "
        "ValueError on cpu and simt; on a GPU the nearer end is taken.",
    .inputs = {{"x", op::takes(op::kFloatTypes, "[batch, steps, dim]; %")},
               {"lengths", op::takes(op::kIndexTypes, "[batch], %")}},
    .out_doc = "[batch, dim], dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .ladder = op::make_ladder<rung_call, kRungs>("masked_mean", op::kThreads),
    .host = kHost};

}  // namespace
}  // namespace kernel::masked_mean

void masked_mean(const TensorView& out, const TensorView& x, const TensorView& lengths,
                 const MaskedMeanOptions& options) {
  op::run(kernel::masked_mean::kDefinition, out, {x, lengths}, options);
}
Tensor masked_mean(const TensorView& x, const TensorView& lengths,
                   const MaskedMeanOptions& options) {
  return std::move(op::allocate(kernel::masked_mean::kDefinition, {x, lengths}, options)[0]);
}

op::OperatorList ops::masked_mean() { return op::registered(kernel::masked_mean::kDefinition); }

}  // namespace tensorcraft
