// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: maximum and sum come from one walk. A thread keeps both; a larger maximum m'
// rescales the sum by exp(m - m'). That is 2 reads and 1 write a row instead of 3 and 1, and
// accesses are 16 bytes wide. Demands: unit stride along the axis; vector > 1 needs aligned rows.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/softmax/params.h"

namespace tensorcraft::kernel::softmax {

// Adds `kCount` values to a running maximum and sum.
template <int kCount>
TC_DEVICE void add_online(float& top, float& sum, const float (&v)[kCount]) {
  float next = top;
  for (int e = 0; e < kCount; ++e) next = fmax_nan(next, v[e]);
  if (next == -kInfinity) return;  // nothing but -inf so far: the sum is 0
  sum *= exp_fast(top - next);
  for (int e = 0; e < kCount; ++e) sum += exp_fast(v[e] - next);
  top = next;
}

template <class T, Config C>
TC_DEVICE void online(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  constexpr int kStep = C.threads * C.vector;
  const int first = int(threadIdx.x) * C.vector;
  const int64_t whole = p.cols / C.vector * C.vector;  // the rest goes one by one
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(p.x) + p.x_rows.offset<C.nested>(row);
    T* out = static_cast<T*>(p.out) + p.out_rows.offset<C.nested>(row);
    float top = -kInfinity, sum = 0;
    for (int64_t i = first; i < whole; i += kStep) {
      const auto part = load_vector<C.vector>(x + i);
      float v[C.vector];
      for (int e = 0; e < C.vector; ++e) v[e] = float(part[e]);
      add_online(top, sum, v);
    }
    for (int64_t i = whole + threadIdx.x; i < p.cols; i += C.threads) {
      const float v[1] = {float(x[i])};
      add_online(top, sum, v);
    }

    const float row_top = block_max(scratch, top);
    const float part = sum == 0.f ? 0.f : sum * exp_fast(top - row_top);
    const float scale = 1.f / block_sum(scratch, part);
    for (int64_t i = first; i < whole; i += kStep) {
      auto part = load_vector<C.vector>(x + i);
      for (int e = 0; e < C.vector; ++e) part[e] = T(exp_fast(float(part[e]) - row_top) * scale);
      store_vector(out + i, part);
    }
    for (int64_t i = whole + threadIdx.x; i < p.cols; i += C.threads)
      out[i] = T(exp_fast(float(x[i]) - row_top) * scale);
  }
}

}  // namespace tensorcraft::kernel::softmax
