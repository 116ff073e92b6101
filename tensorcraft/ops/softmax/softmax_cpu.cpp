// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax_cpu.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <cmath>
#include <limits>

namespace tensorcraft::kernel::softmax {

void cpu(const TensorView& out, const TensorView& x, int axis) {
  const host::Rows from(x, axis), to(out, axis);
  const int64_t n = from.length();
  host::for_each_row(from.count(), n, [&](int64_t row) {
    const float* values = from.read(row, host::scratch(host::Slot::row_a, n));
    float* result = to.target(row, host::scratch(host::Slot::row_b, n));
    const float top = host::row_max(values, n);
    // inf - inf is NaN, but a vector exponential may take the difference as 0: say it plainly.
    const float shift = std::isfinite(top) ? top : std::numeric_limits<float>::quiet_NaN();
    const float sum = host::row_exp(result, values, shift, n);
    host::row_scale(result, result, 1.0f / sum, 0.0f, n);
    to.commit(row, result);
  });
}

void reference(const TensorView& out, const TensorView& x, int axis) {
  const host::Elements to(out.transpose(axis, -1)), from(x.transpose(axis, -1));
  const int64_t cols = x.shape(axis);
  for (int64_t first = 0; first < x.size(); first += cols) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = first; i < first + cols; ++i)
      if (from[i] > top || std::isnan(from[i])) top = from[i];
    for (int64_t i = first; i < first + cols; ++i) sum += std::exp(from[i] - top);
    for (int64_t i = first; i < first + cols; ++i) to.set(i, std::exp(from[i] - top) / sum);
  }
}

}  // namespace tensorcraft::kernel::softmax
