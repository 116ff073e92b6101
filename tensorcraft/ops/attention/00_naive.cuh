// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp computes one query row and walks its keys once. The softmax is online: with the running
// maximum m and sum l, a new score s makes m' = max(m, s) and rescales what was summed before by
// exp(m - m'), so memory is O(head_dim) a row and no score is ever stored.
// Every row reads all its keys and values: 2 FLOP a byte in float32. Accepts everything: any
// head_dim up to 512, of values too, any alignment, any scale, masks, ragged batches.
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/attention/mask.cuh"
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kPerLane = C.head_dim / 32;
    const int lane = threadIdx.x % 32;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
    const int i = int(row % p.seq_q), h = int(row / p.seq_q % p.heads);
    const int b = int(row / p.seq_q / p.heads);
    const T* q = static_cast<const T*>(p.q) + b * p.q_strides.batch + h * p.q_strides.head +
                 i * p.q_strides.row;
    const Request request = request_of(p, b, i);
    const KeyRange seen = request.seen(i);
    const auto first_of = [&](const void* data, const Strides& s) {
      return static_cast<const T*>(data) + b * s.batch + h / p.group * s.head +
             (request.first_key + seen.begin) * s.row;
    };
    const T *k = first_of(p.k, p.k_strides), *v = first_of(p.v, p.v_strides);
    const int64_t mask = mask_row(p.mask, b, h, i);

    // Lane t holds elements t, t + 32, ... of the query and of the output.
    const int head_k = h / p.group;
    const float scale = p.scale * scale_of(p.q_scale, h) * scale_of(p.k_scale, head_k);
    float query[kPerLane], acc[kPerLane];
    for (int e = 0; e < kPerLane; ++e) {
      const int d = lane + 32 * e;
      query[e] = d < p.head_dim ? float(q[d]) * scale : 0.f;
      acc[e] = 0.f;
    }
    // A sink is a logit without a value that comes first.
    float top = sink_of(p, request.number, h);
    float sum = top == -kInfinity ? 0.f : 1.f;
    for (int j = seen.begin; j < seen.end; ++j, k += p.k_strides.row, v += p.v_strides.row) {
      const float added = mask_at<T>(p.mask, mask + j * p.mask.key);
      if (added == -kInfinity) continue;
      float s = 0.f;
      for (int e = 0; e < kPerLane; ++e)
        if (const int d = lane + 32 * e; d < p.head_dim) s += query[e] * float(k[d]);
      s = capped(warp_sum(s), p.softcap) + added;
      const float next = fmaxf(top, s);
      // A first score of -inf leaves the maximum at -inf; -inf - (-inf) would be NaN.
      const float shift = next == -kInfinity ? 0.f : next;
      const float keep = expf(top - shift), weight = expf(s - shift);
      sum = sum * keep + weight;
      for (int e = 0; e < kPerLane; ++e)
        if (const int d = lane + 32 * e; d < p.v_dim) acc[e] = acc[e] * keep + weight * float(v[d]);
      top = next;
    }

    using Out = Output<T, C>;
    // No visible key: 0, not 0 / 0.
    const float inverse = sum == 0.f ? 0.f : scale_of(p.v_scale, head_k) / sum;
    Out* out = static_cast<Out*>(p.out) + b * p.out_strides.batch + h * p.out_strides.head +
               i * p.out_strides.row;
    for (int e = 0; e < kPerLane; ++e)
      if (const int d = lane + 32 * e; d < p.v_dim) out[d] = Out(acc[e] * inverse);
    if (p.lse && lane == 0) p.lse[row] = sum == 0.f ? -kInfinity : top + logf(sum);
  }
};

}  // namespace tensorcraft::kernel::attention
