// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/csr/steps.hpp"

#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"

namespace tensorcraft::kernel::csr {
namespace {

Output output(const std::optional<TensorView>& t) {
  return t ? Output{t->writable_data(), t->stride(0)} : Output{nullptr, 0};
}

}  // namespace

const jit::Rung* kernel(std::string_view name, std::string_view file) {
  return &op::make_rung("csr", name, file, op::kThreads);
}

Params params(const Problem& q) {
  Params p{.a = {.data = data_of(q.data_in),
                 .indices = data_of(q.indices_in),
                 .indptr = data_of(q.indptr_in),
                 .rows = q.rows,
                 .cols = q.cols,
                 .stored = q.stored,
                 .data_stride = q.data_in ? q.data_in->stride(0) : 0,
                 .indices_stride = q.indices_in ? q.indices_in->stride(0) : 0,
                 .indptr_stride = q.indptr_in ? q.indptr_in->stride(0) : 0},
           .data = output(q.data),
           .indices = output(q.indices),
           .indptr = output(q.indptr),
           .dense = q.dense ? op::shared_address(*q.dense) : nullptr};
  for (int i = 0; q.dense && i < 2; ++i) p.dense_strides[i] = q.dense->stride(i);
  return p;
}

DType moved(const TensorView& t) { return op::moved_as(int(dtype_bytes(t.dtype()))); }

op::Step step(const jit::Rung& rung, std::span<const DType> types, const Choice& choice) {
  op::Step made = op::make_step(rung, types, choice.start);
  made.workspace_at = kWorkspace;
  return made;
}

}  // namespace tensorcraft::kernel::csr
