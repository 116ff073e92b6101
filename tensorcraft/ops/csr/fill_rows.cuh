// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block a row, and few blocks: zeros, then the stored elements, while the zeros are in the cache
// of the GPU. With a warp a row all zeros would have gone to memory before the first element comes.
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct FillRows {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    for (int64_t row = blockIdx.x; row < p.a.rows; row += gridDim.x) {
      T* const out = static_cast<T*>(p.dense) + row * p.dense_strides[0];
      for (int64_t i = threadIdx.x; i < p.a.cols; i += C.threads)
        out[i * p.dense_strides[1]] = T(0);
      __syncthreads();
      const auto end = row_begin<I>(p.a, row + 1);
      for (auto k = row_begin<I>(p.a, row) + threadIdx.x; k < end; k += C.threads) {
        const I column = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
        if (is_column(p.a, column))
          out[column * p.dense_strides[1]] = static_cast<const T*>(p.a.data)[k * p.a.data_stride];
      }
    }
  }
};

}  // namespace tensorcraft::kernel::csr
