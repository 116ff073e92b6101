// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once: the bytes of a copy. A short row belongs to a warp or half of one, which needs no barrier;
// a long one to the block. Demands: a row fits group * vector * slots elements.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/softmax/params.h"

namespace tensorcraft::kernel::softmax {

template <class T, Config C>
TC_DEVICE void in_registers(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  const int64_t index = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
  const bool exists = index < p.rows;  // threads without a row still take part in shuffles
  const int64_t row = exists ? index : 0;
  const int first = int(threadIdx.x % C.group) * C.vector, cols = int(p.cols);
  const T* x = static_cast<const T*>(p.x) + p.x_rows.offset<C.nested>(row) + first;
  T* out = static_cast<T*>(p.out) + p.out_rows.offset<C.nested>(row) + first;
  constexpr int kStep = C.group * C.vector;

  float v[C.slots][C.vector];
  float top = -kInfinity, sum = 0;
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    const int left = cols - first - s * kStep;
    if (C.whole || left >= C.vector) {
      load_floats(v[s], x + s * kStep);
    } else {  // exp(-inf) adds nothing
      for (int e = 0; e < C.vector; ++e) v[s][e] = e < left ? float(x[s * kStep + e]) : -kInfinity;
    }
  }
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    float part = v[s][0];
    for (int e = 1; e < C.vector; ++e) part = fmax_nan(part, v[s][e]);
    top = fmax_nan(top, part);
  }
  top = group_reduce<C.group>(scratch, top, Max());
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    float part = 0;
    for (int e = 0; e < C.vector; ++e) part += v[s][e] = exp_fast(v[s][e] - top);
    sum += part;
  }
  const float scale = 1.f / group_reduce<C.group>(scratch, sum, Sum());
  if (!exists) return;

#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    const int left = cols - first - s * kStep;
    for (int e = 0; e < C.vector; ++e) v[s][e] *= scale;
    if (C.whole || left >= C.vector) {
      store_floats(out + s * kStep, v[s]);
    } else {
      for (int e = 0; e < C.vector; ++e)
        if (e < left) out[s * kStep + e] = T(v[s][e]);
    }
  }
}

}  // namespace tensorcraft::kernel::softmax
