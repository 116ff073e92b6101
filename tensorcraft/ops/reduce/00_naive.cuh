// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one output: a walk over its elements, whatever their strides. Neighbouring threads
// read addresses that lie a row apart if the last axis is reduced, and few outputs are few threads.
#include "tensorcraft/ops/reduce/reducer.cuh"

namespace tensorcraft::kernel::reduce {

// Elements that meet before they join the rest, so that rounding grows with 256 and n / 256, not n.
inline constexpr int64_t kTogether = 256;

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using R = Reducer<T, C.operation>;
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
    typename R::State s = R::identity();
    for (int64_t segment = 0; segment < p.segments; ++segment) {
      const T* run = x + row_offset(p, Params::kSegments, segment);
      for (int64_t first = 0; first < p.cols; first += kTogether) {
        const int64_t end = first + kTogether < p.cols ? first + kTogether : p.cols;
        typename R::State part = R::identity();
        for (int64_t i = first; i < end; ++i)
          add_one<R>(part, run[i * p.x_step], segment * p.cols + i);
        s = R::combine(s, part);
      }
    }
    store<R>(p, row_offset(p, Params::kOut, row), s);
  }
};

}  // namespace tensorcraft::kernel::reduce
