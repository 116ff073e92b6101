// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize_cpu.hpp"

#include "tensorcraft/op/host/elements.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::kernel::l2_normalize {

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
