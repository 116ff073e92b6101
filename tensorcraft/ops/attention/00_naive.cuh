// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp computes one query row and walks its keys once. The softmax is online: with the running
// maximum m and sum l, a new score s makes m' = max(m, s) and rescales what was summed before by
// exp(m - m'), so memory is O(head_dim) a row and no score is ever stored.
// Every row reads all its keys and values: 2 FLOP a byte in float32. Accepts any head_dim up to
// 256, any alignment, any scale.
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kPerLane = kMaxHeadDim / 32;
    const int lane = threadIdx.x % 32;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
    const int i = int(row % p.seq_q), h = int(row / p.seq_q % p.heads);
    const int b = int(row / p.seq_q / p.heads);
    const T* q = static_cast<const T*>(p.q) + b * p.q_strides.batch + h * p.q_strides.head +
                 i * p.q_strides.row;
    const T* k =
        static_cast<const T*>(p.k) + b * p.k_strides.batch + h / p.group * p.k_strides.head;
    const T* v =
        static_cast<const T*>(p.v) + b * p.v_strides.batch + h / p.group * p.v_strides.head;

    // Lane t holds elements t, t + 32, ... of the query and of the output.
    float query[kPerLane], acc[kPerLane];
    for (int e = 0; e < kPerLane; ++e) {
      const int d = lane + 32 * e;
      query[e] = d < p.head_dim ? float(q[d]) * p.scale : 0.f;
      acc[e] = 0.f;
    }
    float top = -kInfinity, sum = 0.f;
    const int limit = key_limit(p, visible_keys(p, b), i);
    for (int j = 0; j < limit; ++j, k += p.k_strides.row, v += p.v_strides.row) {
      float s = 0.f;
      for (int e = 0; e < kPerLane; ++e)
        if (const int d = lane + 32 * e; d < p.head_dim) s += query[e] * float(k[d]);
      s = warp_sum(s);
      const float next = fmaxf(top, s);
      // A first score of -inf leaves the maximum at -inf; -inf - (-inf) would be NaN.
      const float shift = next == -kInfinity ? 0.f : next;
      const float keep = expf(top - shift), weight = expf(s - shift);
      sum = sum * keep + weight;
      for (int e = 0; e < kPerLane; ++e)
        if (const int d = lane + 32 * e; d < p.head_dim)
          acc[e] = acc[e] * keep + weight * float(v[d]);
      top = next;
    }

    const float inverse = sum == 0.f ? 0.f : 1.f / sum;  // no visible key: 0, not 0 / 0
    T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + h * p.out_strides.head +
             i * p.out_strides.row;
    for (int e = 0; e < kPerLane; ++e)
      if (const int d = lane + 32 * e; d < p.head_dim) out[d] = T(acc[e] * inverse);
    if (p.lse && lane == 0) p.lse[row] = sum == 0.f ? -kInfinity : top + logf(sum);
  }
};

}  // namespace tensorcraft::kernel::attention
