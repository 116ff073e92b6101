// SPDX-License-Identifier: Apache-2.0
#pragma once
// x in row-major order, in the workspace: by tiles of 32 x 32 that are read along one axis and
// written along the other.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/spmm/params.h"

namespace tensorcraft::kernel::spmm {

template <class T>
struct PackTile {
  T elements[kPackTile][kPackTile + 1];
};

struct Pack {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& tile = static_shared<PackTile<T>>();
    constexpr int kStep = C.threads / kPackTile;
    const int inner = int(threadIdx.x) % kPackTile, outer = int(threadIdx.x) / kPackTile;
    const int64_t across = div_ceil(p.columns, int64_t(kPackTile));
    const int64_t row = blockIdx.x / across * kPackTile;
    const int64_t column = (blockIdx.x - blockIdx.x / across * across) * kPackTile;
    const T* const x = static_cast<const T*>(p.x);
    for (int i = outer; i < kPackTile; i += kStep)
      if (row + inner < p.a.cols && column + i < p.columns)
        tile.elements[inner][i] = x[(row + inner) * p.x_strides[0] + (column + i) * p.x_strides[1]];
    __syncthreads();
    for (int i = outer; i < kPackTile; i += kStep)
      if (row + i < p.a.cols && column + inner < p.columns)
        static_cast<T*>(p.workspace)[(row + i) * p.packed + column + inner] =
            tile.elements[i][inner];
  }
};

}  // namespace tensorcraft::kernel::spmm
