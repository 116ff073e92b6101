// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp prepares one head of a token, of q, k or v, any strides: it walks over the head for the
// mean square, then over the pairs that rotate, then over what is left. Each lane reads slot,
// position, cos and sin for itself.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/append_kv/token.cuh"

namespace tensorcraft::kernel::append_kv {

// A head as it goes in, normalised, and what is behind it, which is not.
template <class T, class W>
struct Head {
  const T* in;
  const W* weight;  // null: as it is
  int64_t step;
  int dim;
  const T* behind = nullptr;
  int64_t behind_step = 0;
  float unit = 1;  // 1 over the root mean square

  TC_DEVICE float operator[](int i) const {
    if (i >= dim) return float(behind[(i - dim) * behind_step]);
    const float x = float(in[i * step]);
    return weight ? x * unit * float(weight[i]) : x;
  }
  TC_DEVICE void normalize(float eps) {
    if (!weight) return;
    float squares = 0;
    for (int i = int(threadIdx.x % 32); i < dim; i += 32)
      squares += float(in[i * step]) * float(in[i * step]);
    unit = 1.0f / sqrtf(warp_sum(squares) / float(dim) + eps);
  }
};

// put(i, x) with every element of a head of `dim`, of which `half` pairs from `first` on rotate.
template <class W, class T, class P, class Put>
TC_DEVICE void prepare(const P& p, int64_t token, const Head<T, W>& head, int dim, int first,
                       int half, const Put& put) {
  const int lane = int(threadIdx.x % 32);
  if (half > 0) {
    const int64_t at = position_of(p, token);
    for (int i = lane; i < half; i += 32) {
      Rotation r{kNan, kNan};
      if (at >= 0)
        r = {float(static_cast<const W*>(p.cos)[at * p.cos_row + i * p.cos_step]),
             float(static_cast<const W*>(p.sin)[at * p.sin_row + i * p.sin_step])};
      const int at_first = first + i, at_second = at_first + half;
      float x = head[at_first], y = head[at_second];
      rotate(x, y, r);
      put(at_first, x);
      put(at_second, y);
    }
  }
  for (int other = lane; other < dim - 2 * half; other += 32) {
    const int i = other < first ? other : other + 2 * half;
    put(i, head[i]);
  }
}

// A row of 656 bytes, group by group of its latent values.
template <class W, class T, class P>
TC_DEVICE void put_latent_row(const P& p, int64_t token, const Head<T, W>& head,
                              const LatentRowOut& row) {
  constexpr int kOfLane = LatentRow::kGroup / 32;
  const int lane = int(threadIdx.x % 32);
  for (int group = 0; group < LatentRow::kGroups; ++group) {
    const int first = group * LatentRow::kGroup + lane;
    float x[kOfLane], amax = 0;
    for (int e = 0; e < kOfLane; ++e) {
      x[e] = head[first + 32 * e];
      amax = fmax_nan(amax, fabsf(x[e]));
    }
    const float scale = code_scale<e4m3>(warp_max(amax));
    for (int e = 0; e < kOfLane; ++e) row.code(first + 32 * e) = to_code<e4m3>(x[e] / scale);
    if (lane == 0) row.scale(group) = scale;
  }
  prepare<W>(p, token, head, LatentRow::kDim, rotated_from(p), p.half, [&](int e, float x) {
    if (e >= LatentRow::kLatent) row.rope(e - LatentRow::kLatent) = bf16(x);
  });
}

struct Naive {
  template <class T, class Code, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int heads = p.q.count + p.k.count + p.v.count;
    const int64_t i = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    const int64_t token = i / heads;
    int h = int(i % heads);
    if (token >= p.tokens) return;

    if (h < p.q.count) {
      Head<T, W> head{
          static_cast<const T*>(p.q.in) + row_offset(p, Params::kQ, token) + h * p.q.head,
          static_cast<const W*>(p.q_weight), p.q.step, p.q.dim};
      head.normalize(p.eps);
      T* out = static_cast<T*>(p.q_out) + row_offset(p, Params::kQOut, token) + h * p.q_out_head;
      return prepare<W>(p, token, head, p.q.dim, rotated_from(p), p.half,
                        [&](int e, float x) { out[e * p.q_out_step] = T(x); });
    }
    const Place place = place_of(p, token);
    if (place.block < 0) return;
    h -= p.q.count;
    const bool is_k = h < p.k.count;
    if (!is_k) h -= p.k.count;
    const Heads& from = is_k ? p.k : p.v;
    const Cache& cache = is_k ? p.k_cache : p.v_cache;
    Head<T, W> head{static_cast<const T*>(from.in) +
                        row_offset(p, is_k ? Params::kK : Params::kV, token) + h * from.head,
                    is_k ? static_cast<const W*>(p.k_weight) : nullptr, from.step, from.dim};
    if (is_k && p.k_pe.count) {
      head.behind =
          static_cast<const T*>(p.k_pe.in) + row_offset(p, Params::kKPe, token) + h * p.k_pe.head;
      head.behind_step = p.k_pe.step;
    }
    head.normalize(p.eps);
    Code* out = static_cast<Code*>(cache.data) + place.offset(cache, h);
    if constexpr (kIsRow<Code>) {
      put_latent_row<W>(p, token, head, LatentRowOut{out});
    } else {
      const float scale = scale_of(p, is_k, token, h);
      prepare<W>(p, token, head, is_k ? row_dim(p) : p.v.dim, rotated_from(p), is_k ? p.half : 0,
                 [&](int e, float x) { out[e * cache.step] = stored<Code>(x, scale); });
    }
  }
};

}  // namespace tensorcraft::kernel::append_kv
