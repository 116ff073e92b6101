// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/masked_mean/masked_mean_cpu.hpp"

#include "tensorcraft/ops/masked_mean/masked_mean_simt.hpp"
#include "tensorcraft/ops/masked_mean/params.h"
#include "tensorcraft/ops/masked_mean/plan.h"
#include <limits>

namespace tensorcraft {
namespace kernel::masked_mean {
namespace {

struct Problem {
  TensorView out, x, lengths;
};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::masked_mean::Config{.threads = ", c.threads, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::masked_mean::Params";
const jit::Rung kNaive{"tensorcraft/ops/masked_mean/00_naive.cuh",
                       "tensorcraft::kernel::masked_mean::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kBlock{"tensorcraft/ops/masked_mean/01_block.cuh",
                       "tensorcraft::kernel::masked_mean::block", kParams, config_text,
                       block_instances};

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

op::Plan plan(const jit::Rung& rung, const Problem& q, const Params& p, const Launch& launch) {
  return op::make_plan(rung, {q.x.dtype(), q.lengths.dtype()}, launch, p);
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kNaive, q, p, naive_launch(p));
}

op::Verdict accepts_block(const Problem& q, const DeviceInfo&) {
  return op::decline(block_problem(params(q)));
}

op::Plan plan_block(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kBlock, q, p, block_launch(p));
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

const op::Variant<Problem> kTable[] = {
    {"block", "one block for 32 columns of a sequence, steps over its warps", DeviceType::cuda,
     accepts_block, nullptr, plan_block},
    {"naive", "one thread an output", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "float, sequences over all cores", DeviceType::cpu, always,
     [](const Problem& q) { cpu(q.out, q.x, q.lengths); }},
    {"reference", "double, obvious loops", DeviceType::cpu, always,
     [](const Problem& q) { reference(q.out, q.x, q.lengths); }},
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
    .aliases = {},
    .inputs = {{"x", "[batch, steps, dim]; float32, float16 or bfloat16"},
               {"lengths", "[batch], int32 or int64"}},
    .options = {},
    .out_doc = "[batch, dim], dtype of x",
    .extra_outputs = {},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

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

op::OperatorList ops::masked_mean() {
  static const auto& entry =
      *new op::OperatorOf(kernel::masked_mean::kDefinition);  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
