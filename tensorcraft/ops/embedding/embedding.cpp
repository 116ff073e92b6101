// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/embedding.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/moved_as.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/embedding/embedding_cpu.hpp"
#include "tensorcraft/ops/embedding/embedding_simt.hpp"
#include "tensorcraft/ops/embedding/params.h"
#include "tensorcraft/ops/embedding/plan.h"

#include <algorithm>
#include <bit>

namespace tensorcraft {
namespace kernel::embedding {
namespace {

struct Problem {
  TensorView out, ids, table;
  int64_t cols() const { return table.shape(1); }
};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::embedding::Config{.threads = ", c.threads,
              ", .group = ", c.group, ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::embedding::Params";
const jit::Rung kNaive{"tensorcraft/ops/embedding/00_naive.cuh",
                       "tensorcraft::kernel::embedding::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kVectorized{"tensorcraft/ops/embedding/01_vectorized.cuh",
                            "tensorcraft::kernel::embedding::vectorized", kParams, config_text,
                            vectorized_instances};

Params params(const Problem& q) {
  return {.ids = q.ids.data(),
          .table = q.table.data(),
          .out = q.out.data(),
          .count = q.ids.size(),
          .rows = q.table.shape(0),
          .cols = q.cols(),
          .table_row = q.table.stride(0),
          .table_step = q.table.stride(1),
          .out_step = q.out.strides().back(),
          .ids_map = op::element_map(q.ids),
          .out_rows = op::row_map(q.out, q.out.rank() - 1),
          .nan = kNanBySize[std::countr_zero(dtype_bytes(q.table.dtype()))]};
}

int element_bytes(const Problem& q) { return int(dtype_bytes(q.table.dtype())); }

op::Plan plan(const jit::Rung& rung, const Problem& q, const Params& p, const Launch& launch) {
  return op::make_plan(rung, {q.ids.dtype(), op::moved_as(int(dtype_bytes(q.table.dtype())))},
                       launch, p);
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kNaive, q, p, naive_launch(p));
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kVectorized, q, p, vectorized_launch(p, element_bytes(q)));
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo&) {
  return op::decline(vectorized_problem(params(q), element_bytes(q)));
}

const op::Variant<Problem> kTable[] = {
    {"vectorized", "a warp or less moves a row, 16 bytes a thread", DeviceType::cuda,
     accepts_vectorized, nullptr, plan_vectorized},
    {"naive", "one thread an element, any strides", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "whole rows over all cores", DeviceType::cpu, always,
     [](const Problem& q) { cpu(q.out, q.ids, q.table); }},
    {"reference", "obvious loops", DeviceType::cpu, always,
     [](const Problem& q) { reference(q.out, q.ids, q.table); }},
};

const std::vector<DType> kIds = {DType::int32, DType::int64};

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

const op::Definition<Problem, EmbeddingOptions> kDefinition{
    .name = "embedding",
    .group = "data movement",
    .summary = "The rows of a table that ids name.",
    .details =
        "out[i..., :] = table[ids[i...], :]; the bits are copied. Strides are free. An id outside "
        "[0, rows) is an IndexError on the CPU; on a GPU its row becomes NaN, and nothing outside "
        "the "
        "table is read.",
    .aliases = {},
    .inputs = {{"ids", "int32 or int64, any shape"}, {"table", "[rows, dim], any float dtype"}},
    .options = {},
    .out_doc = "ids.shape + [dim], dtype of table",
    .extra_outputs = {},
    .dtypes = kIds,
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::embedding

void embedding(const TensorView& out, const TensorView& ids, const TensorView& table,
               const EmbeddingOptions& options) {
  op::run(kernel::embedding::kDefinition, out, {ids, table}, options);
}

Tensor embedding(const TensorView& ids, const TensorView& table, const EmbeddingOptions& options) {
  return std::move(op::allocate(kernel::embedding::kDefinition, {ids, table}, options)[0]);
}

op::OperatorList ops::embedding() {
  static const auto& entry =
      *new op::OperatorOf(kernel::embedding::kDefinition);  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
