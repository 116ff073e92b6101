// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gated_activation/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

namespace tensorcraft::kernel::gated_activation {
namespace {

// The halves of x: the gates, and what they multiply.
TensorView gates(const Problem& q) { return q.x.slice(q.axis(), 0, q.cols()); }
TensorView ups(const Problem& q) { return q.x.slice(q.axis(), q.cols(), 2 * q.cols()); }

}  // namespace

void cpu(const Problem& q) {
  const host::Rows gate(gates(q)), up(ups(q)), out(q.out);
  const int64_t n = q.cols();
  host::for_each_row(out.count(), n, [&](int64_t row) {
    float* y = out.target(row, host::scratch(host::Slot::row_a, n));
    host::row_activate(y, gate.read(row, host::scratch(host::Slot::row_b, n)), q.gate, n);
    host::row_multiply(y, up.read(row, host::scratch(host::Slot::row_c, n)), n);
    out.commit(row, y);
  });
}

void reference(const Problem& q) {
  const host::Elements gate(gates(q)), up(ups(q)), out(q.out);
  for (int64_t i = 0; i < q.out.size(); ++i) out.set(i, host::activate(q.gate, gate[i]) * up[i]);
}

}  // namespace tensorcraft::kernel::gated_activation
