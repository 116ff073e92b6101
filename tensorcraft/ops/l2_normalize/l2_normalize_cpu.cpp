// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize_cpu.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::kernel::l2_normalize {

void cpu(const TensorView& out, const TensorView& x, int axis, float eps) {
  const host::Rows from(x, axis), to(out, axis);
  const int64_t n = from.length();
  host::for_each_row(from.count(), n, [&](int64_t row) {
    const float* values = from.read(row, host::scratch(host::Slot::row_a, n));
    float* result = to.target(row, host::scratch(host::Slot::row_b, n));
    const float length = std::max(std::sqrt(host::row_sum_of_squares(values, 0, n)), eps);
    for (int64_t i = 0; i < n; ++i) result[i] = values[i] / length;
    to.commit(row, result);
  });
}

void reference(const TensorView& out, const TensorView& x, int axis, double eps) {
  const host::Elements to(out.transpose(axis, -1)), from(x.transpose(axis, -1));
  const int64_t cols = x.shape(axis);
  for (int64_t first = 0; first < x.size(); first += cols) {
    double sum = 0;
    for (int64_t i = first; i < first + cols; ++i) sum += from[i] * from[i];
    const double length = std::max(std::sqrt(sum), eps);
    for (int64_t i = first; i < first + cols; ++i) to.set(i, from[i] / length);
  }
}

}  // namespace tensorcraft::kernel::l2_normalize
