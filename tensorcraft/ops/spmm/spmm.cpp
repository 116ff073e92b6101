// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmm/spmm.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/checks/csr_arguments.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/spmm/plan.h"
#include "tensorcraft/ops/spmm/problem.hpp"

#include <cstddef>

namespace tensorcraft {
namespace kernel::spmm {
namespace {

using Options = SpmmOptions;
constexpr std::string_view kName = "spmm";
constexpr int kWorkspace = offsetof(Params, workspace);
constexpr ConfigField kFields[] = {{"threads"}, {"vector"}, {"semiring", op::kSemirings}};
const jit::Rung& kPack = op::make_rung(kName, "pack", "pack.cuh", kFields);
const jit::Rung& kPartition = op::make_rung(kName, "partition", "partition.cuh", kFields);
const jit::Rung& kFinish = op::make_rung(kName, "finish", "finish.cuh", kFields);

op::RungCall<Params, Given> rung_call(const Problem& q) {
  Params p{.a = op::csr_params(q.a),
           .x = q.x.data(),
           .c = data_of(q.c),
           .out = q.out.writable_data(),
           .columns = q.x.shape(1),
           .x_strides = {q.x.stride(0), q.x.stride(1)},
           .c_strides = {},
           .out_strides = {q.out.stride(0), q.out.stride(1)},
           .alpha = q.alpha,
           .beta = q.beta,
           .workspace = nullptr,
           .packed = 0,
           .merge_at = 0};
  for (int i = 0; q.c && i < 2; ++i) p.c_strides[i] = q.c->stride(i);
  const auto bytes = int64_t(dtype_bytes(q.x.dtype()));
  return {p, {int(bytes), q.longest_row}, {q.x.dtype(), q.a.indices.dtype()}};
}

void add_workspace(op::Step& step) { step.workspace_at = kWorkspace; }

// In front of a rung that reads rows of x as lines.
void add_packing(op::Plan& plan, const Problem& q, const Params& p) {
  const DType moved = op::moved_as(int(dtype_bytes(q.x.dtype())));
  const int64_t blocks =
      div_ceil(p.a.cols, int64_t(kPackTile)) * div_ceil(p.columns, int64_t(kPackTile));
  add_workspace(plan.add_preparation(
      op::make_step(kPack, {&moved, 1}, Start{{}, std::max<int64_t>(blocks, 1)}), p));
}

// The steps before and behind merge_path.
void add_merge_steps(op::Plan& plan, const Problem& q, const Params& p) {
  const Config config{};
  const DType types[] = {q.x.dtype(), q.a.indices.dtype()};
  const Start each{config, div_ceil(tiles(p) + 1, int64_t(config.threads))};
  add_workspace(plan.add_preparation(op::make_step(kPartition, {&types[1], 1}, each), p));
  const Start warps{config, std::max<int64_t>(div_ceil(tiles(p) * 32, int64_t(config.threads)), 1)};
  add_workspace(plan.add(op::make_step(kFinish, types, warps), p));
}

void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo& device) {
  Params p = rung_call(q).params;
  if (rung != "naive" && is_packed(p)) {
    p.packed = packed_pitch(p);
    p.merge_at = round_up(p.a.cols * p.packed * int64_t(dtype_bytes(q.x.dtype())), int64_t(256));
  }
  plan.set_params(plan.main_index(), p);
  plan.workspace_bytes = size_t(p.merge_at);
  if (rung == "merge_path") {
    plan.workspace_bytes += size_t(merge_bytes(p));
    add_merge_steps(plan, q, p);
  }
  if (p.packed) add_packing(plan, q, p);
  if (plan.workspace_bytes) plan.main().workspace_at = kWorkspace;
  for (size_t i = plan.main_index(); i < plan.steps().size(); ++i)
    op::set_semiring<Config>(plan, i, p, q.semiring, device);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, equal parts of the matrix over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options&) {
  op::check_structure(kName, in[1], in[2]);
  if (in[3].rank() != 2)
    fail(ErrorKind::value, kName, ": x: expected a matrix, (cols, n), got shape ", in[3].shape(),
         "; spmv takes a vector");
  return {{"out", in[0].dtype(), {in[2].size() - 1, in[3].shape(1)}}};
}

Problem check(const op::Call<Options>& call) {
  const Options& o = call.options;
  const TensorView& x = call.in(3);
  const Dims shape = infer(call.inputs, o)[0].shape;
  const op::CsrView a = op::checked_csr(kName, call.in(0), call.in(1), call.in(2), x.shape(0));
  op::check_like(kName, "x", x, a.data.dtype(), x.shape());
  op::check_like(kName, "out", call.out(), a.data.dtype(), shape);
  const float beta = o.beta.value_or(o.c ? 1.0f : 0.0f);
  if (beta != 0 && !o.c)
    fail(ErrorKind::value, kName, ": beta is ", beta, " but there is no c to scale; give c");
  if (o.c) op::check_like(kName, "c", *o.c, a.data.dtype(), shape);
  return {.out = call.out(),
          .a = a,
          .x = x,
          .c = beta != 0 ? o.c : std::nullopt,
          .alpha = o.alpha,
          .beta = beta,
          .semiring = op::checked_semiring(kName, o.combine, o.reduce),
          .longest_row = o.longest_row};
}

op::Cost cost(const Problem& q) {
  const double bytes = op::csr_bytes(q.a) + double(q.x.nbytes()) + double(q.out.nbytes());
  return {.bytes = bytes + (q.c ? double(q.c->nbytes()) : 0),
          .flops = 2 * double(q.a.stored()) * double(q.x.shape(1))};
}

const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "sparse",
    .summary = "The product of a sparse and a dense matrix.",
    .details =
        "out = alpha A x + beta c for a matrix of compressed rows: row r has the elements "
        "indptr[r] to indptr[r + 1] of data, in the columns that indices says, sorted or not. "
        "x, c and out are row-major, column-major or of any strides. Sums are float32 and results "
        "repeat to the bit. combine is an expression, in the language of elementwise, of x, an "
        "element of the dense matrix, and a, that of the sparse one beside it, both float32; "
        "reduce makes one number of those of a row, and of a row without elements 0, -infinity, "
        "infinity or 1. c is not read if beta is 0. What lies outside the matrix counts for "
        "nothing. Matrices that check and know themselves are in tc.sparse.",
    .inputs = op::csr_inputs({{"x", "(cols, n), dtype of data"}}),
    .options = op::csr_product_options<Options>("added, (rows, n), dtype of data"),
    .out_doc = "(rows, n), dtype of data",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, complete>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::spmm

void spmm(const TensorView& out, const TensorView& data, const TensorView& indices,
          const TensorView& indptr, const TensorView& x, const SpmmOptions& options) {
  op::run(kernel::spmm::kDefinition, out, {data, indices, indptr, x}, options);
}
Tensor spmm(const TensorView& data, const TensorView& indices, const TensorView& indptr,
            const TensorView& x, const SpmmOptions& options) {
  return std::move(op::allocate(kernel::spmm::kDefinition, {data, indices, indptr, x}, options)[0]);
}

op::OperatorList ops::spmm() { return op::registered(kernel::spmm::kDefinition); }

}  // namespace tensorcraft
