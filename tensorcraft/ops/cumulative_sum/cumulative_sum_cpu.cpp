// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

namespace tensorcraft::kernel::cumulative_sum {
namespace {

void add_integers(const host::Elements& to, bool is_float, const host::Elements& from,
                  int64_t first, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = first; i < first + n; ++i) {
    sum += uint64_t(from.integer(i));
    is_float ? to.set(i, double(int64_t(sum))) : to.set_integer(i, int64_t(sum));
  }
}

void set_initial(const Problem& q) {
  if (!q.initial) return;
  const host::Elements to(*q.initial);
  for (int64_t i = 0; i < q.initial->size(); ++i) to.set(i, 0);
}

}  // namespace

void cpu(const Problem& q) {
  set_initial(q);
  const int64_t n = q.cols();
  if (q.x.size() == 0) return;
  const bool is_float = is_floating(q.out.dtype());
  if (!is_floating(q.x.dtype())) {
    const host::Elements to(q.out.transpose(q.axis, -1)), from(q.x.transpose(q.axis, -1));
    return host::for_each_row(q.rows(), n,
                              [&](int64_t row) { add_integers(to, is_float, from, row * n, n); });
  }
  const auto add = [n](int64_t, const float* x, float* y) {
    double sum = 0;  // costs nothing: each addition waits for the last
    for (int64_t i = 0; i < n; ++i) y[i] = float(sum += double(x[i]));
  };
  host::map_rows(host::Rows(q.x, q.axis), host::Rows(q.out, q.axis), add);
}

void reference(const Problem& q) {
  set_initial(q);
  const host::Elements to(q.out.transpose(q.axis, -1)), from(q.x.transpose(q.axis, -1));
  const int64_t n = q.cols();
  for (int64_t row = 0; row < q.rows(); ++row) {
    if (!is_floating(q.x.dtype())) {
      add_integers(to, is_floating(q.out.dtype()), from, row * n, n);
      continue;
    }
    double sum = 0;
    for (int64_t i = row * n; i < row * n + n; ++i) to.set(i, sum += from[i]);
  }
}

}  // namespace tensorcraft::kernel::cumulative_sum
