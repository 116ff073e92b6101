// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/masked_mean/plan.h"
#include "tensorcraft/ops/masked_mean/problem.hpp"

namespace tensorcraft {
namespace kernel::masked_mean {
namespace {

constexpr ConfigField kFields[] = {{"threads"}};

Params params(const Problem& q) {
  return {.x = q.x.data(),
          .lengths = q.lengths.data(),
          .out = q.out.data(),
          .batch = q.x.shape(0),
          .steps = q.x.shape(1),
          .cols = q.x.shape(2),
          .x_batch = q.x.stride(0),
          .x_step = q.x.stride(1),
          .x_col = q.x.stride(2),
          .lengths_step = q.lengths.stride(0),
          .out_batch = q.out.stride(0),
          .out_col = q.out.stride(1)};
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {params(q), {}, {q.x.dtype(), q.lengths.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, sequences over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

Dims result_shape(std::span<const TensorView> in) {
  SymbolicSize batch("batch"), cols("dim");
  TensorMatcher({batch, kAnySize, cols})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16})
      .verify(in[0], "masked_mean", "x");
  TensorMatcher({batch})
      .with_any_strides()
      .with_dtype({DType::int32, DType::int64})
      .verify(in[1], "masked_mean", "lengths");
  return {batch.unwrap(), cols.unwrap()};
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const MaskedMeanOptions&) {
  return {{"out", in[0].dtype(), result_shape(in)}};
}

Problem check(const op::Call<MaskedMeanOptions>& call) {
  const TensorView& x = call.in(0);
  op::check_like("masked_mean", "out", call.out(), x.dtype(), result_shape(call.inputs));
  return {call.out(), x, call.in(1)};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.lengths.nbytes() + q.out.nbytes()),
          .flops = double(q.x.size())};
}

const op::Definition<Problem, MaskedMeanOptions> kDefinition{
    .name = "masked_mean",
    .group = "reduce",
    .summary = "The mean over the first lengths[b] steps of each sequence.",
    .details =
        "out[b, :] = sum(x[b, 0 .. lengths[b], :]) / lengths[b], zeros where the length is 0. Sums "
        "are float32; steps beyond a length are not read. A length outside [0, steps] is a "
        "ValueError on the CPU; on a GPU the nearer end is taken.",
    .inputs = {{"x", "[batch, steps, dim]; float32, float16 or bfloat16"},
               {"lengths", "[batch], int32 or int64"}},
    .out_doc = "[batch, dim], dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, instances>("masked_mean", kFields),
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
