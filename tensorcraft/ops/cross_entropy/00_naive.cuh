// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row, any strides: a walk for the maximum and one for the sum, which is taken in
// pieces so that it never dwarfs the next term. Where the classes are not neighbours but the rows
// are, as in images of class scores, neighbouring threads read neighbouring elements.
#include "tensorcraft/ops/cross_entropy/row.cuh"

namespace tensorcraft::kernel::cross_entropy {

inline constexpr int64_t kPiece = 256;

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
    for (int64_t first = 0; first < p.classes; first += kPiece) {
      const int64_t end = first + kPiece < p.classes ? first + kPiece : p.classes;
      float piece = 0;
      for (int64_t i = first; i < end; ++i) piece += expf(float(x[i * p.class_step]) - total.top);
      total.sum += piece;
    }
    row.write(total, row.picked());
  }
};

}  // namespace tensorcraft::kernel::cross_entropy
