// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::kernel::l2_normalize {

void cpu(const Problem& q) {
  const int64_t n = q.cols();
  host::map_rows(
      host::Rows(q.x, q.axis), host::Rows(q.out, q.axis), [&](int64_t, const float* x, float* y) {
        const float length = std::max(std::sqrt(host::row_sum_of_squares(x, 0, n)), q.eps);
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] / length;
      });
}

void reference(const Problem& q) {
  const auto& [out, x, axis, eps] = q;
  const host::Elements to(out.transpose(axis, -1)), from(x.transpose(axis, -1));
  const int64_t cols = x.shape(axis);
  for (int64_t first = 0; first < x.size(); first += cols) {
    double sum = 0;
    for (int64_t i = first; i < first + cols; ++i) sum += from[i] * from[i];
    const double length = std::max(std::sqrt(sum), double(eps));
    for (int64_t i = first; i < first + cols; ++i) to.set(i, from[i] / length);
  }
}

}  // namespace tensorcraft::kernel::l2_normalize
