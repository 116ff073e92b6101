// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: one block, one row, so neighbouring threads read neighbouring elements and a warp
// fetches 4 lines of 128 bytes for 128 floats instead of 32 lines for 32. Maximum and sum go
// through shuffles and one array in shared memory. Still three reads of the row for one write.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct Block {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
      const Logits<T, C> x(p, row);
      T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
      float top = kLowest;
      for (int64_t i = threadIdx.x; i < p.cols; i += C.threads) top = fmax_nan(top, x.strided(i));
      top = block_max(scratch, top);
      CompensatedSum terms;
      for (int64_t i = threadIdx.x; i < p.cols; i += C.threads) terms.add(expf(x.strided(i) - top));
      const float sum = block_sum(scratch, terms.value());
      if constexpr (C.form == Form::logsumexp) {
        if (threadIdx.x == 0) *out = T(ExpSum{top, sum}.log_sum());
      } else {
        const Finish<C> finish({top, sum});
        for (int64_t i = threadIdx.x; i < p.cols; i += C.threads)
          out[i * p.out_step] = T(finish(x.strided(i)));
      }
    }
  }
};

}  // namespace tensorcraft::kernel::softmax
