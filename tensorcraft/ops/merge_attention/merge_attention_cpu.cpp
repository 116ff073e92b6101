// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/merge_attention/problem.hpp"
#include "tensorcraft/ops/merge_attention/shares.cuh"

#include <cmath>

namespace tensorcraft::kernel::merge_attention {

void cpu(const Problem& q) {
  const host::Rows from_a(q.out_a), from_b(q.out_b), to(q.out);
  const host::Elements lse_a(q.lse_a), lse_b(q.lse_b);
  const auto lse = q.lse ? std::optional<host::Elements>(*q.lse) : std::nullopt;
  const int64_t n = q.cols();
  host::for_each_row(from_a.count(), n, [&](int64_t row) {
    const Shares s = shares_of(float(lse_a[row]), float(lse_b[row]));
    const float* a = from_a.read(row, host::scratch(host::Slot::row_a, n));
    const float* b = from_b.read(row, host::scratch(host::Slot::row_b, n));
    float* out = to.target(row, host::scratch(host::Slot::row_c, n));
    for (int64_t i = 0; i < n; ++i) out[i] = s.merged(a[i], b[i]);
    to.commit(row, out);
    if (lse) lse->set(row, s.lse);
  });
}

void reference(const Problem& q) {
  const host::Elements a(q.out_a), b(q.out_b), lse_a(q.lse_a), lse_b(q.lse_b), out(q.out);
  const auto lse = q.lse ? std::optional<host::Elements>(*q.lse) : std::nullopt;
  const int64_t n = q.cols();
  for (int64_t row = 0; row < q.lse_a.size(); ++row) {
    const double x = lse_a[row], y = lse_b[row], none = -INFINITY;
    const double top = x == none ? y : y == none ? x : std::isnan(x) ? x : std::max(y, x);
    const double sum = std::exp(x - top) + std::exp(y - top);
    for (int64_t i = row * n; i < (row + 1) * n; ++i)
      out.set(i, (x == none ? 0 : std::exp(x - top) / sum * a[i]) +
                     (y == none ? 0 : std::exp(y - top) / sum * b[i]));
    if (lse) lse->set(row, top == none ? none : top + std::log(sum));
  }
}

}  // namespace tensorcraft::kernel::merge_attention
