// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of out, any strides. Neighbouring threads have neighbouring columns, so
// all of a row read the same elements of the matrix, one after the other.
#include "tensorcraft/ops/spmm/element.cuh"

namespace tensorcraft::kernel::spmm {

struct Naive {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t row = i / p.columns, column = i - row * p.columns;
    if (row >= p.a.rows) return;
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    const T* const x = static_cast<const T*>(p.x) + column * p.x_strides[1];
    const auto end = row_begin<I>(p.a, row + 1);
    float total = semiring.identity();
    for (auto k = row_begin<I>(p.a, row); k < end; ++k) {
      const I at = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
      if (!is_column(p.a, at)) continue;
      const float a = float(static_cast<const T*>(p.a.data)[k * p.a.data_stride]);
      total = semiring.reduce(total, semiring.combine(float(x[at * p.x_strides[0]]), a));
    }
    store<T>(p, row, column, total);
  }
};

}  // namespace tensorcraft::kernel::spmm
