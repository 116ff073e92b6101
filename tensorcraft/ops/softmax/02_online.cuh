// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: maximum and sum come from one walk. A thread keeps both; a larger maximum m'
// rescales the sum by exp(m - m'). That is 2 reads and 1 write a row instead of 3 and 1, and
// accesses are 16 bytes wide; logsumexp, which writes one value, reads its row once. Demands: unit
// stride along the axis; vector > 1 needs aligned rows.
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct Online {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<ExpSum>>();
    constexpr int kStep = C.threads * C.vector;
    const int first = int(threadIdx.x) * C.vector;
    const int64_t whole = p.cols / C.vector * C.vector;  // the rest goes one by one
    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
      const Logits<T, C> x(p, row);
      T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
      LongExpSum part;
      float v[C.vector];
#pragma unroll 4  // accesses in flight
      for (int64_t i = first; i < whole; i += kStep) {
        x.load(v, i);
        part.add(v);
      }
#pragma unroll 1  // once at most
      for (int64_t i = whole + threadIdx.x; i < p.cols; i += C.threads) {
        const float one[1] = {x.at(i)};
        part.add(one);
      }

      const ExpSum total = part.all.over_group<C.threads>(scratch);
      __syncthreads();  // the next row's parts lie where those of this one were
      if constexpr (C.form == Form::logsumexp) {
        if (threadIdx.x == 0) *out = T(total.log_sum());
      } else {
        const Finish<C> finish(total);
        for (int64_t i = first; i < whole; i += kStep) {
          x.load(v, i);
          for (int e = 0; e < C.vector; ++e) v[e] = finish(v[e]);
          store_floats(out + i, v);
        }
#pragma unroll 1
        for (int64_t i = whole + threadIdx.x; i < p.cols; i += C.threads)
          out[i] = T(finish(x.at(i)));
      }
    }
  }
};

}  // namespace tensorcraft::kernel::softmax
