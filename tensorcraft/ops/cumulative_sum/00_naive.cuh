// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row. Where the axis is not the last one, neighbouring threads read neighbours,
// and this is a good kernel for many rows: C.vector reads are in flight in each thread.
#include "tensorcraft/ops/cumulative_sum/sums.cuh"

namespace tensorcraft::kernel::cumulative_sum {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const T* x = row_of_x<T, C>(p, row);
    const OutRow<T, C> out(p, row);
    if (p.initial) out.store_initial(p);
    Chain<T, C.operation> sum;
    int64_t i = 0;
    for (; i + C.vector <= p.cols; i += C.vector) {
      T v[C.vector];
#pragma unroll
      for (int u = 0; u < C.vector; ++u) v[u] = x[(i + u) * p.x_step];
#pragma unroll
      for (int u = 0; u < C.vector; ++u) {
        sum.add(value_of<C>(p, v[u]));
        out.store(p, (i + u) * p.out_step, sum.value());
      }
    }
    for (; i < p.cols; ++i) {
      sum.add(value_of<C>(p, x[i * p.x_step]));
      out.store(p, i * p.out_step, sum.value());
    }
  }
};

}  // namespace tensorcraft::kernel::cumulative_sum
