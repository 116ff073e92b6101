// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmv/spmv.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/checks/csr_arguments.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/spmv/plan.h"
#include "tensorcraft/ops/spmv/problem.hpp"

#include <cstddef>

namespace tensorcraft {
namespace kernel::spmv {
namespace {

using Options = SpmvOptions;
constexpr std::string_view kName = "spmv";
constexpr ConfigField kFields[] = {{"threads"}, {"group"}, {"semiring", op::kSemirings}};
const jit::Rung& kPartition = op::make_rung(kName, "partition", "partition.cuh", kFields);
const jit::Rung& kFinish = op::make_rung(kName, "finish", "finish.cuh", kFields);

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const Params p{.a = op::csr_params(q.a),
                 .x = q.x.data(),
                 .c = data_of(q.c),
                 .out = q.out.writable_data(),
                 .x_stride = q.x.stride(0),
                 .c_stride = q.c ? q.c->stride(0) : 0,
                 .out_stride = q.out.stride(0),
                 .alpha = q.alpha,
                 .beta = q.beta,
                 .starts = data_of<const int64_t>(q.starts),
                 .workspace = nullptr};
  return {p, {.longest_row = q.longest_row}, {q.x.dtype(), q.a.indices.dtype()}};
}

// The steps before and behind merge_path.
void add_merge_steps(op::Plan& plan, const Problem& q, const Params& p) {
  constexpr int at = offsetof(Params, workspace);
  const Config config{};
  plan.workspace_bytes = size_t(workspace_bytes(p));
  plan.main().workspace_at = at;
  if (!p.starts) {
    const DType index = q.a.indices.dtype();
    const Start start{config, div_ceil(tiles(p) + 1, int64_t(config.threads))};
    op::Step& step = plan.add_preparation(op::make_step(kPartition, {&index, 1}, start), p);
    step.workspace_at = at;
  }
  const DType types[] = {q.x.dtype(), q.a.indices.dtype()};
  const Start start{config, std::max<int64_t>(div_ceil(tiles(p) * 32, int64_t(config.threads)), 1)};
  op::Step& step = plan.add(op::make_step(kFinish, types, start), p);
  step.workspace_at = at;
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo& device) {
  const Params p = rung_call(q).params;
  if (rung == "merge_path") add_merge_steps(plan, q, p);
  for (size_t i = plan.main_index(); i < plan.steps().size(); ++i)
    op::set_semiring<Config>(plan, i, p, q.semiring, device);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, equal parts of the matrix over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options&) {
  op::check_structure(kName, in[1], in[2]);
  return {{"out", in[0].dtype(), {in[2].size() - 1}}};
}

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView& x = call.in(3);
  if (x.rank() != 1)
    fail(ErrorKind::value, kName, ": x: expected a vector, one element a column, got shape ",
         x.shape(), "; spmm takes a matrix");
  const op::CsrView a = op::checked_csr(kName, call.in(0), call.in(1), call.in(2), x.size());
  op::check_like(kName, "x", x, a.data.dtype(), {a.cols});
  op::check_like(kName, "out", call.out(), a.data.dtype(), {a.rows()});
  const float beta = o.beta.value_or(o.c ? 1.0f : 0.0f);
  if (beta != 0 && !o.c)
    fail(ErrorKind::value, kName, ": beta is ", beta, " but there is no c to scale; give c");
  if (o.c) op::check_like(kName, "c", *o.c, a.data.dtype(), {a.rows()});
  if (o.starts) op::check_starts(kName, *o.starts, a);
  return {.out = call.out(),
          .a = a,
          .x = x,
          .c = beta != 0 ? o.c : std::nullopt,
          .starts = o.starts,
          .alpha = o.alpha,
          .beta = beta,
          .semiring = op::checked_semiring(kName, o.combine, o.reduce),
          .longest_row = o.longest_row};
}

op::Cost cost(const Problem& q) {
  const double bytes = op::csr_bytes(q.a) + double(q.x.nbytes()) + double(q.out.nbytes());
  return {.bytes = bytes + (q.c ? double(q.c->nbytes()) : 0), .flops = 2 * double(q.a.stored())};
}

std::vector<op::Option<Options>> options() {
  auto all = op::csr_product_options<Options>("added, (rows), dtype of data");
  all.push_back(op::option("starts", &Options::starts,
                           op::takes(op::kInt64, "%, what csr_starts gives for the matrix")));
  return all;
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "sparse",
    .summary = "The product of a sparse matrix and a vector.",
    .details =
        "out = alpha A x + beta c for a matrix of compressed rows: row r has the elements "
        "indptr[r] to indptr[r + 1] of data, in the columns that indices says, sorted or not. "
        "Sums are float32 and results repeat to the bit. combine is an expression, in the language "
        "of elementwise, of x, an element of the vector, and a, that of the matrix beside it, both "
        "float32; reduce makes one number of those of a row, and of a row without elements 0, "
        "-infinity, infinity or 1. c is not read if beta is 0. What lies outside the matrix counts "
        "for nothing. Matrices that check and know themselves are in tc.sparse.",
    .inputs = op::csr_inputs({{"x", "(cols), dtype of data"}}),
    .options = options(),
    .out_doc = "(rows), dtype of data",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::spmv

void spmv(const TensorView& out, const TensorView& data, const TensorView& indices,
          const TensorView& indptr, const TensorView& x, const SpmvOptions& options) {
  op::run(kernel::spmv::kDefinition, out, {data, indices, indptr, x}, options);
}
Tensor spmv(const TensorView& data, const TensorView& indices, const TensorView& indptr,
            const TensorView& x, const SpmvOptions& options) {
  return std::move(op::allocate(kernel::spmv::kDefinition, {data, indices, indptr, x}, options)[0]);
}

op::OperatorList ops::spmv() { return op::registered(kernel::spmv::kDefinition); }

}  // namespace tensorcraft
