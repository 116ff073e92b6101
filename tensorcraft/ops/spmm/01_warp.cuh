// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp has a row of the matrix and 32 to 128 columns of out, of which a lane has up
// to four neighbours. Lanes read 32 elements of the matrix at once and hand them on by shuffles:
//   reads of an element of the matrix = columns / (32 vector), not columns.
// A row of x is read as whole lines. If it is in no such order, pack.cuh copies x first.
#include "tensorcraft/ops/spmm/element.cuh"

namespace tensorcraft::kernel::spmm {

struct Warp {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    using S = SemiringOf<ParamsOf<C>, C.semiring>;
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t warp = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    const int64_t part = warp / p.a.rows, row = warp - part * p.a.rows;
    if (part >= column_parts(p, C.vector)) return;
    const S semiring(p);
    Totals<T, C.vector, S> totals(semiring, part * kWarpColumns<C> + lane * C.vector);
    const bool exists = totals.column < p.columns;
    const int64_t end = int64_t(row_begin<I>(p.a, row + 1));
    for (int64_t first = int64_t(row_begin<I>(p.a, row)); first < end; first += kWarpSize) {
      int64_t column = -1;
      float a = 0;
      if (first + lane < end) {
        const I at = static_cast<const I*>(p.a.indices)[first + lane];
        column = is_column(p.a, at) ? int64_t(at) : -1;
        a = float(static_cast<const T*>(p.a.data)[first + lane]);
      }
      const int count = end - first < kWarpSize ? int(end - first) : kWarpSize;
      for (int i = 0; i < count; i += kAhead) {
        Packed<T, C.vector> x[kAhead];
        float elements[kAhead];
        bool is_used[kAhead];
#pragma unroll
        for (int j = 0; j < kAhead; ++j) {  // a lane that has no element has no column either
          const int64_t at = warp_broadcast(column, (i + j) % kWarpSize);
          elements[j] = warp_broadcast(a, (i + j) % kWarpSize);
          is_used[j] = exists && at >= 0 && i + j < count;
          if (is_used[j]) x[j] = Packed<T, C.vector>::load(row_of_x<T>(p, at) + totals.column);
        }
#pragma unroll
        for (int j = 0; j < kAhead; ++j)
          if (is_used[j]) totals.add(x[j], elements[j]);
      }
    }
    if (exists) totals.store_row(p, row);
  }
};

}  // namespace tensorcraft::kernel::spmm
