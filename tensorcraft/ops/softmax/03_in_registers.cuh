// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once: the bytes of a copy. A short row belongs to one warp, which needs no barrier and no shared
// memory; a long one to the block. Demands: a row fits group * vector * slots elements.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/softmax/params.h"

namespace tensorcraft::kernel::softmax {

// The reduction over the threads that share a row.
template <Config C, class Op>
TC_DEVICE float group_reduce(float v, Op op) {
  if constexpr (C.group == kWarpSize) {
    return warp_reduce(v, op);
  } else {
    static_assert(C.group == C.threads);
    return block_reduce(static_shared<BlockReduce<float>>(), v, op);
  }
}

template <class T, Config C>
TC_DEVICE void in_registers(const Params& p) {
  const int64_t row = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
  if (row >= p.rows) return;  // whole groups leave
  const T* x = static_cast<const T*>(p.x) + p.x_rows.offset(row);
  T* out = static_cast<T*>(p.out) + p.out_rows.offset(row);
  const int first = int(threadIdx.x) % C.group * C.vector, cols = int(p.cols);

  float v[C.slots][C.vector];
  float top = -kInfinity, sum = 0;
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    const int i = first + s * C.group * C.vector;
    if (i + C.vector <= cols) {
      const auto part = load_vector<C.vector>(x + i);
      for (int e = 0; e < C.vector; ++e) v[s][e] = float(part[e]);
    } else {  // exp(-inf) adds nothing
      for (int e = 0; e < C.vector; ++e) v[s][e] = i + e < cols ? float(x[i + e]) : -kInfinity;
    }
    for (int e = 0; e < C.vector; ++e) top = fmax_nan(top, v[s][e]);
  }
  top = group_reduce<C>(top, Max());
#pragma unroll
  for (int s = 0; s < C.slots; ++s)
    for (int e = 0; e < C.vector; ++e) sum += v[s][e] = exp_fast(v[s][e] - top);
  const float scale = 1.f / group_reduce<C>(sum, Sum());

#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    const int i = first + s * C.group * C.vector;
    AlignedVector<T, C.vector> part;
    for (int e = 0; e < C.vector; ++e) part[e] = T(v[s][e] * scale);
    if (i + C.vector <= cols) {
      store_vector(out + i, part);
    } else {
      for (int e = 0; e < C.vector; ++e)
        if (i + e < cols) out[i + e] = part[e];
    }
  }
}

}  // namespace tensorcraft::kernel::softmax
