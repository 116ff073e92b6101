// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/embedding.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/embedding/plan.h"
#include "tensorcraft/ops/embedding/problem.hpp"

namespace tensorcraft {
namespace kernel::embedding {
namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"group"}, {"nested"}};

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const int bytes = int(dtype_bytes(q.table.dtype()));
  const CallParams p = with_maps(Params{.ids = q.ids.data(),
                                        .table = q.table.data(),
                                        .out = q.out.writable_data(),
                                        .count = q.ids.size(),
                                        .rows = q.table.shape(0),
                                        .cols = q.cols(),
                                        .table_row = q.table.stride(0),
                                        .table_step = q.table.stride(1),
                                        .out_step = q.out.strides().back(),
                                        .nan = kNanBySize[std::countr_zero(unsigned(bytes))]},
                                 op::element_map(q.ids), op::row_map(q.out, q.out.rank() - 1));
  return {p, {bytes}, {q.ids.dtype(), op::moved_as(bytes)}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "whole rows over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops", .run = reference},
};

Dims result_shape(std::span<const TensorView> in) {
  op::check_dtype("embedding", "ids", in[0], {DType::int32, DType::int64});
  if (in[0].rank() == kMaxRank)
    fail(ErrorKind::value, "embedding: ids: expected at most ", kMaxRank - 1,
         " dimensions, since the result has one more, got shape ", in[0].shape());
  TensorMatcher({kAnySize, kAnySize})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                   DType::float8_e5m2})
      .verify(in[1], "embedding", "table");
  Dims shape = in[0].shape();
  shape.push_back(in[1].shape(1));
  return shape;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const EmbeddingOptions&) {
  return {{"out", in[1].dtype(), result_shape(in)}};
}

Problem check(const op::Call<EmbeddingOptions>& call) {
  op::check_like("embedding", "out", call.out(), call.in(1).dtype(), result_shape(call.inputs));
  return {call.out(), call.in(0), call.in(1)};
}

op::Cost cost(const Problem& q) {
  return {.bytes = 2.0 * double(q.out.nbytes()) + double(q.ids.nbytes()), .flops = 0};
}

constexpr DType kTableTypes[] = {DType::float32, DType::float16, DType::bfloat16,
                                 DType::float8_e4m3fn, DType::float8_e5m2};

const op::Definition<Problem, EmbeddingOptions> kDefinition{
    .name = "embedding",
    .group = "data movement",
    .summary = "The rows of a table that ids name.",
    .details =
        "out[i..., :] = table[ids[i...], :]; the bits are copied. Strides are free. An id outside "
        "[0, rows) is an IndexError on the CPU; on a GPU its row becomes NaN, and nothing outside "
        "the table is read.",
    .inputs = {{"ids", op::takes(op::kIndexTypes, "%, any shape")},
               {"table", op::takes(kTableTypes, "[rows, dim]: %")}},
    .out_doc = "ids.shape + [dim], dtype of table",
    .dtypes = {DType::int32, DType::int64},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>("embedding", kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::embedding

void embedding(const TensorView& out, const TensorView& ids, const TensorView& table,
               const EmbeddingOptions& options) {
  op::run(kernel::embedding::kDefinition, out, {ids, table}, options);
}

Tensor embedding(const TensorView& ids, const TensorView& table, const EmbeddingOptions& options) {
  return std::move(op::allocate(kernel::embedding::kDefinition, {ids, table}, options)[0]);
}

op::OperatorList ops::embedding() { return op::registered(kernel::embedding::kDefinition); }

}  // namespace tensorcraft
