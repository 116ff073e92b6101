// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp a row: a ballot says which of 32 elements are stored, and so the place of each. Four times
// 32 elements are asked for before the first ballot.
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct FromDense {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kAhead = 4;
    const int lane = int(threadIdx.x) % kWarpSize;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (row >= p.a.rows) return;
    const T* const x = static_cast<const T*>(p.dense) + row * p.dense_strides[0];
    const int64_t begin = int64_t(row_begin<I>(p.a, row));
    const int64_t end = int64_t(row_begin<I>(p.a, row + 1));
    int64_t next = begin;
    for (int64_t first = 0; first < p.a.cols; first += kAhead * kWarpSize) {
      T values[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int64_t column = first + i * kWarpSize + lane;
        values[i] = column < p.a.cols ? x[column * p.dense_strides[1]] : T(0);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const uint32_t stored = __ballot_sync(kFullWarp, values[i] != 0);
        const int64_t at = next + count_bits(stored & ((1u << lane) - 1));
        if (values[i] != 0 && at < end) {
          element_of<T>(p.data, at) = values[i];
          element_of<I>(p.indices, at) = I(first + i * kWarpSize + lane);
        }
        next += count_bits(stored);
      }
    }
    // Places of an indptr that is not of this matrix.
    clear<T, I>(p, next, end);
    if (row == 0) clear<T, I>(p, 0, begin < end ? begin : end);
    if (row == p.a.rows - 1) clear<T, I>(p, begin < end ? end : begin, p.a.stored);
  }

 private:
  template <class T, class I>
  TC_DEVICE static void clear(const Params& p, int64_t begin, int64_t end) {
    for (int64_t k = begin + int(threadIdx.x) % kWarpSize; k < end; k += kWarpSize) {
      element_of<T>(p.data, k) = T(0);
      element_of<I>(p.indices, k) = I(0);
    }
  }
};

}  // namespace tensorcraft::kernel::csr
