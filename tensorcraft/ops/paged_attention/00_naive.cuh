// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp computes one query of one head and walks the keys that it sees once, with an online
// softmax, through the table of pages: one lookup a page. Every query reads all its keys for
// itself, though the heads of a group share them. Takes everything: ragged batches, any block_size,
// strides and head_dim, caches of codes, one cache for keys and values, rows of 656 bytes, queries
// and keys in two arrays.
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/paged_attention/elements.cuh"
#include "tensorcraft/ops/paged_attention/pages.cuh"
#include "tensorcraft/ops/paged_attention/tokens.cuh"

namespace tensorcraft::kernel::paged_attention {

struct Naive {
  template <class T, class Code, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kOfKey = kMaxHeadDim / 32, kOfValue = kMaxValueDim / 32;
    const int lane = int(threadIdx.x % 32);
    const int64_t row = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    if (row >= p.tokens * p.heads) return;
    const int64_t token = row / p.heads;
    const int h = int(row % p.heads);
    const Place place = place_of(p, token);
    const int64_t line = p.starts ? token : place.i, b = p.starts ? 0 : place.b;
    const T* q = static_cast<const T*>(p.q) + b * p.q_strides.batch + line * p.q_strides.row +
                 h * p.q_strides.head;
    T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + line * p.out_strides.row +
             h * p.out_strides.head;
    if (place.b < 0) {  // a token of no request
      for (int d = lane; d < p.v_dim; d += 32) out[d * p.out_strides.step] = T(0.f);
      if (p.lse && lane == 0) p.lse[row] = -kInfinity;
      return;
    }
    const Pages pages(p, place.b, h / p.group);

    // Lane t holds elements t, t + 32, ... of the query and of the output.
    float query[kOfKey], acc[kOfValue];
    for (int e = 0; e < kOfKey; ++e) {
      const int d = lane + 32 * e;
      query[e] = d < p.q_dim ? float(q[d * p.q_strides.step]) : 0.f;
    }
    if constexpr (C.has_pe) {
      const T* q_pe = static_cast<const T*>(p.q_pe) + b * p.q_pe_strides.batch +
                      line * p.q_pe_strides.row + h * p.q_pe_strides.head;
      for (int e = 0; e < kOfKey; ++e)
        if (const int d = lane + 32 * e; d >= p.q_dim && d < p.head_dim)
          query[e] = float(q_pe[(d - p.q_dim) * p.q_pe_strides.step]);
    }
    for (float& a : acc) a = 0;
    float top = -kInfinity, sum = 0.f;
    const KeyRange range = keys_of(place.request, place.i);
    const TreeRow tree = tree_row(p, place.b, place.request, place.i);
    int64_t block = -1;
    for (int j = range.begin; j < range.end; ++j) {
      if (j == range.begin || j % p.block_size == 0) block = pages.block_of(j);
      if (block < 0) continue;
      if (p.tree.data && !tree.sees(j)) continue;
      const Code* k = static_cast<const Code*>(p.k.data) + pages.offset(p.k, block, j);
      const Code* v = static_cast<const Code*>(p.v.data) + pages.offset(p.v, block, j);
      float s = 0.f;
      for (int e = 0; e < kOfKey; ++e)
        if (const int d = lane + 32 * e; d < p.k_dim) s += query[e] * element(k, p.k.step, d);
      if constexpr (C.has_pe) {
        const Code* k_pe = static_cast<const Code*>(p.k_pe.data) + pages.offset(p.k_pe, block, j);
        for (int e = 0; e < kOfKey; ++e)
          if (const int d = lane + 32 * e; d >= p.k_dim && d < p.head_dim)
            s += query[e] * element(k_pe, p.k_pe.step, d - p.k_dim);
      }
      s = capped(warp_sum(s) * (p.scale * pages.scale(p.k, block, j)), p.softcap);
      const float next = fmaxf(top, s);
      // A first score of -inf leaves the maximum at -inf; -inf - (-inf) would be NaN.
      const float shift = next == -kInfinity ? 0.f : next;
      const float keep = expf(top - shift), weight = expf(s - shift);
      sum = sum * keep + weight;
      const float of_value = weight * pages.scale(p.v, block, j);
      for (int e = 0; e < kOfValue; ++e)
        if (const int d = lane + 32 * e; d < p.v_dim)
          acc[e] = acc[e] * keep + of_value * element(v, p.v.step, d);
      top = next;
    }

    const bool sees_none = sum == 0.f;  // and not NaN
    float keep = 1.f;
    if (p.sinks) {
      const float sink = p.sinks[h], next = fmaxf(top, sink);
      const float shift = next == -kInfinity ? 0.f : next;
      keep = expf(top - shift);
      sum = sum * keep + expf(sink - shift);
      top = next;
    }
    const float factor = sees_none ? 0.f : keep / sum;
    for (int e = 0; e < kOfValue; ++e)
      if (const int d = lane + 32 * e; d < p.v_dim)
        out[d * p.out_strides.step] = T(acc[e] * factor);
    if (p.lse && lane == 0) p.lse[row] = sum == 0.f ? -kInfinity : top + logf(sum);
  }
};

}  // namespace tensorcraft::kernel::paged_attention
