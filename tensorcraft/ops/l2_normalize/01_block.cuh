// SPDX-License-Identifier: Apache-2.0
#pragma once
// One block, one row: neighbouring threads read neighbours, so a warp fetches 4 lines of 128 bytes
// for 128 floats instead of 32 lines for 32. The sum goes through shuffles and shared memory.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/l2_normalize/params.h"

namespace tensorcraft::kernel::l2_normalize {

struct Block {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
      const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
      T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
      CompensatedSum squares;
      for (int64_t i = threadIdx.x; i < p.cols; i += C.threads)
        squares.add(float(x[i * p.x_step]) * float(x[i * p.x_step]));
      const float length = fmax_nan(sqrtf(block_sum(scratch, squares.value())), p.eps);
      if (store_extreme_unit<T, C, false>(p, 1.0f / length, x, out)) continue;
      for (int64_t i = threadIdx.x; i < p.cols; i += C.threads)
        out[i * p.out_step] = T(float(x[i * p.x_step]) / length);
    }
  }
};

}  // namespace tensorcraft::kernel::l2_normalize
