// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_kv: a warp adds up the parts of one query of a head, in their order, and
// the sink once. It reads only the parts that the query sees, since no others were written.
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"

namespace tensorcraft::kernel::paged_attention {

struct Combine {
  template <class T, CombineConfig C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kOfLane = kMaxValueDim / 128;  // accesses of 4 values
    const int lane = int(threadIdx.x % 32);
    const int64_t row = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    if (row >= p.tokens * p.heads) return;
    const int64_t token = row / p.heads;
    const int h = int(row % p.heads), b = int(token / p.queries), i = int(token % p.queries);
    const KeyRange range = keys_of(p, {int64_t(b) * p.queries, p.queries, length_of(p, b)}, i);
    const int first = range.begin / kPartKeys;
    const int last = range.begin < range.end ? div_ceil(range.end, kPartKeys) : first;
    const float *lse = lse_of_part(p, row, 0), *parts = values_of_part(p, row, 0);

    float top = p.sinks ? p.sinks[h] : -kInfinity;
    for (int part = first + lane; part < last; part += 32) top = fmaxf(top, lse[part]);
    top = warp_max(top);
    const float shift = top == -kInfinity ? 0.f : top;
    float sum = 0, acc[kOfLane][4] = {};
    for (int part = first; part < last; ++part) {
      const float of_part = lse[part];
      if (of_part == -kInfinity) continue;
      const float weight = expf(of_part - shift);
      sum += weight;
      for (int e = 0; e < kOfLane; ++e)
        if (const int d = 4 * lane + 128 * e; d < p.v_dim) {
          const auto x = load_vector<4>(parts + int64_t(part) * p.v_dim + d);
          for (int n = 0; n < 4; ++n) acc[e][n] += weight * x[n];
        }
    }
    if (p.sinks) sum += expf(p.sinks[h] - shift);
    const float inverse = sum == 0.f ? 0.f : 1.f / sum;
    T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + i * p.out_strides.row +
             h * p.out_strides.head;
    for (int e = 0; e < kOfLane; ++e)
      if (const int d = 4 * lane + 128 * e; d < p.v_dim) {
        for (float& x : acc[e]) x *= inverse;
        from_floats<T, 4>(acc[e]).store(out + d);
      }
    if (p.lse && lane == 0) p.lse[row] = sum == 0.f ? -kInfinity : shift + logf(sum);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
