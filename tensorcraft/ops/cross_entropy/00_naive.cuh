// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row, any strides: a walk for the maximum and one for the sum, which is
// compensated, as it may dwarf the next term. Where the classes are not neighbours but the rows
// are, as in images of class scores, neighbouring threads read neighbouring elements.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/ops/cross_entropy/row.cuh"

namespace tensorcraft::kernel::cross_entropy {

struct Naive {
  template <class T, class Id, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t index = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (index >= p.rows) return;
    const Row<T, Id, C> row(p, index);
    if (row.is_idle()) return row.write_idle();
    const T* x = row.logits();
    ExpSum total = ExpSum::of_nothing();
    for (int64_t i = 0; i < p.classes; ++i)
      total.top = fmax_nan(total.top, float(x[i * p.class_step]));
    CompensatedSum terms;
    for (int64_t i = 0; i < p.classes; ++i) terms.add(expf(float(x[i * p.class_step]) - total.top));
    total.sum = terms.value();
    row.write(total, row.picked());
  }
};

}  // namespace tensorcraft::kernel::cross_entropy
