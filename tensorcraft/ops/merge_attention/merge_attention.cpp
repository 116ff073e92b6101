// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/merge_attention/merge_attention.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/merge_attention/plan.h"
#include "tensorcraft/ops/merge_attention/problem.hpp"

namespace tensorcraft {
namespace kernel::merge_attention {
namespace {

using Options = MergeAttentionOptions;
constexpr std::string_view kName = "merge_attention";
constexpr ConfigField kFields[] = {{"threads"}, {"group"}, {"nested"}};

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const int last = q.out.rank() - 1;
  const CallParams p =
      with_maps(Params{.out_a = q.out_a.data(),
                       .out_b = q.out_b.data(),
                       .out = q.out.writable_data(),
                       .lse_a = q.lse_a.data_as<const float>(),
                       .lse_b = q.lse_b.data_as<const float>(),
                       .lse = data_of<float>(q.lse),
                       .rows = q.lse_a.size(),
                       .cols = q.cols(),
                       .a_step = q.out_a.stride(last),
                       .b_step = q.out_b.stride(last),
                       .out_step = q.out.stride(last)},
                op::row_map(q.out_a, last), op::row_map(q.out_b, last), op::row_map(q.out, last),
                op::element_map(q.lse_a), op::element_map(q.lse_b),
                q.lse ? op::element_map(*q.lse) : RowMap{});
  return {p, {int(dtype_bytes(q.out.dtype()))}, {q.out.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

Dims rows_of(const TensorView& out_a) {
  op::check_dtype(kName, "out_a", out_a, {DType::float32, DType::float16, DType::bfloat16});
  if (out_a.rank() == 0 || out_a.shape(out_a.rank() - 1) == 0)
    fail(ErrorKind::value, kName,
         ": out_a: expected (..., head_dim) with a head_dim of at least 1, got shape ",
         out_a.shape());
  return Dims(std::span<const int64_t>(out_a.shape()).first(size_t(out_a.rank() - 1)));
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options&) {
  const Dims rows = rows_of(in[0]);
  return {{"out", in[0].dtype(), in[0].shape()}, {"lse", DType::float32, rows}};
}

// Rows are merged in any order, so lse may only be what its own row reads.
Problem check(const op::Call<Options>& call) {
  const TensorView &a = call.in(0), &lse_a = call.in(1), &b = call.in(2), &lse_b = call.in(3);
  const Dims rows = rows_of(a);
  op::check_like(kName, "lse_a", lse_a, DType::float32, rows);
  op::check_like(kName, "out_b", b, a.dtype(), a.shape());
  op::check_like(kName, "lse_b", lse_b, DType::float32, rows);
  op::check_like(kName, "out", call.out(), a.dtype(), a.shape());
  const auto& lse = call.options.lse;
  if (lse) op::check_like(kName, "lse", *lse, DType::float32, rows);
  for (const auto& [name, in] : {std::pair("lse_a", &lse_a), std::pair("lse_b", &lse_b)})
    op::check_apart(kName, "out", call.out(), name, *in);
  if (lse)
    for (const auto& [name, in] : {std::pair("out_a", &a), std::pair("out_b", &b)})
      op::check_apart(kName, "lse", *lse, name, *in);
  return {call.out(), a, lse_a, b, lse_b, lse};
}

op::Cost cost(const Problem& q) {
  return {.bytes = 3.0 * double(q.out.nbytes()) + (q.lse ? 3.0 : 2.0) * double(q.lse_a.nbytes()),
          .flops = 3.0 * double(q.out.size())};
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "attention",
    .summary = "Attention over all keys, from that over two parts of them.",
    .details =
        "lse = log(e^lse_a + e^lse_b) and out = e^(lse_a - lse) out_a + e^(lse_b - lse) out_b: "
        "what attention and paged_attention return for two parts of the keys becomes what they "
        "return for all. lse are natural logarithms. A side whose lse is -inf saw no key: it is "
        "left out, whatever its out holds; two such sides give 0 and -inf. Computed in float32, "
        "rounded once; any strides; out may be out_a or out_b, and lse likewise. Of two calls with "
        "sinks the sink would count twice: give it to one of them. A graph may be replayed with "
        "other contents of all arrays.",
    .inputs = {{"out_a", "(..., head_dim): attention over one part of the keys"},
               {"lse_a", op::takes(op::kFloat32,
                                   "% (...): its logarithm; for layout=\"bshd\" of attention "
                                   "transpose it to the axes of out_a")},
               {"out_b", "over the other part, shape and dtype of out_a"},
               {"lse_b", op::takes(op::kFloat32, "%, shape of lse_a")}},
    .out_doc = "shape and dtype of out_a",
    .extra_outputs = {{{"lse", "log(e^lse_a + e^lse_b), float32, shape of lse_a"}, &Options::lse}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::merge_attention

void merge_attention(const TensorView& out, const TensorView& out_a, const TensorView& lse_a,
                     const TensorView& out_b, const TensorView& lse_b,
                     const MergeAttentionOptions& options) {
  op::run(kernel::merge_attention::kDefinition, out, {out_a, lse_a, out_b, lse_b}, options);
}

MergeAttentionResult merge_attention(const TensorView& out_a, const TensorView& lse_a,
                                     const TensorView& out_b, const TensorView& lse_b,
                                     const MergeAttentionOptions& options) {
  auto tensors =
      op::allocate(kernel::merge_attention::kDefinition, {out_a, lse_a, out_b, lse_b}, options);
  return {std::move(tensors[0]), std::move(tensors[1])};
}

op::OperatorList ops::merge_attention() {
  return op::registered(kernel::merge_attention::kDefinition);
}

}  // namespace tensorcraft
