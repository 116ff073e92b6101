// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp knows its row, 512 latent values and 64 behind them, of a latent cache or a
// head of q. A lane has 16 neighbours of the latent values, which it moves 16 bytes at a time, and
// one of the 32 pairs that rotate; a group of a row of 656 bytes is 8 lanes. Of q, if it is
// prepared in place, the latent part stays where it is. Time is that of moving the rows. Demands:
// unit strides, rows that begin at multiples of 16 bytes; all of the 64 rotate, or nothing.
#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/append_kv/token.cuh"

namespace tensorcraft::kernel::append_kv {

// Latent values of a lane.
inline constexpr int kLaneValues = LatentRow::kLatent / 32;

template <class T>
struct LaneValues {
  static constexpr int kEach = kVectorSize<T>, kAccesses = kLaneValues / kEach;
  Packed<T, kEach> packed[kAccesses];

  TC_DEVICE static LaneValues load(const T* from) {
    LaneValues v;
    for (int i = 0; i < kAccesses; ++i) v.packed[i] = Packed<T, kEach>::load(from + i * kEach);
    return v;
  }
  TC_DEVICE void store(T* to) const {
    for (int i = 0; i < kAccesses; ++i) packed[i].store(to + i * kEach);
  }
  TC_DEVICE void to(float (&x)[kLaneValues]) const {
    for (int i = 0; i < kLaneValues; ++i) x[i] = packed[i / kEach][i % kEach];
  }
  TC_DEVICE static LaneValues of(const float (&x)[kLaneValues]) {
    LaneValues v;
    for (int i = 0; i < kAccesses; ++i) {
      float part[kEach];
      for (int e = 0; e < kEach; ++e) part[e] = x[i * kEach + e];
      v.packed[i] = from_floats<T, kEach>(part);
    }
    return v;
  }
};

// The lane's pair of what is behind the latent values, whose elements lie `step` apart.
template <class W, Config C, class P, class T>
TC_DEVICE void load_pair(const P& p, int64_t token, const T* from, int64_t step, float& x,
                         float& y) {
  constexpr int kHalf = LatentRow::kRope / 2;
  const int lane = int(threadIdx.x % 32);
  x = float(from[lane * step]);
  y = float(from[(lane + kHalf) * step]);
  if constexpr (C.rotates != 0) {
    Rotation r{kNan, kNan};
    if (const int64_t at = position_of(p, token); at >= 0)
      r = {float(static_cast<const W*>(p.cos)[at * p.cos_row + lane * p.cos_step]),
           float(static_cast<const W*>(p.sin)[at * p.sin_row + lane * p.sin_step])};
    rotate(x, y, r);
  }
}
template <class T>
TC_DEVICE void store_pair(T* to, float x, float y) {
  const int lane = int(threadIdx.x % 32);
  to[lane] = T(x);
  to[lane + LatentRow::kRope / 2] = T(y);
}

// The lane's codes, and by one of 8 lanes the scale of their group.
TC_DEVICE void store_codes(const LatentRowOut& row, float (&x)[kLaneValues]) {
  constexpr int kLanes = LatentRow::kGroup / kLaneValues;
  const int lane = int(threadIdx.x % 32);
  float amax = 0;
  for (const float v : x) amax = fmax_nan(amax, fabsf(v));
  const float scale = code_scale<e4m3>(warp_reduce<kLanes>(amax, Max()));
  const Divisor<e4m3> divisor(scale);
  for (float& v : x) v = divisor.divide(divisor.prepared(v));
  store_vector(&row.code(lane * kLaneValues), to_codes<e4m3, true>(x));
  if (lane % kLanes == 0) row.scale(lane / kLanes) = scale;
}

struct LatentWarp {
  template <class T, class Code, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int kLatent = LatentRow::kLatent;
    if (p.tokens == 0) return;
    const int heads = p.q.count + p.k.count;
    const int64_t i = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    const int64_t token = i / heads;
    int h = int(i % heads);
    if (token >= p.tokens) return;
    const int at = int(threadIdx.x % 32) * kLaneValues;
    float x, y;
    if (h < p.q.count) {
      const T* q = static_cast<const T*>(p.q.in) + row_offset(p, Params::kQ, token) + h * p.q.head;
      T* out = static_cast<T*>(p.q_out) + row_offset(p, Params::kQOut, token) + h * p.q_out_head;
      if (out != q) LaneValues<T>::load(q + at).store(out + at);
      load_pair<W, C>(p, token, q + kLatent, 1, x, y);
      return store_pair(out + kLatent, x, y);
    }
    h -= p.q.count;
    const Place place = place_of(p, token);
    if (place.block < 0) return;
    const T* k = static_cast<const T*>(p.k.in) + row_offset(p, Params::kK, token) + h * p.k.head;
    const T* k_pe = k + kLatent;
    if (p.k_pe.count)
      k_pe =
          static_cast<const T*>(p.k_pe.in) + row_offset(p, Params::kKPe, token) + h * p.k_pe.head;
    Code* out = static_cast<Code*>(p.k_cache.data) + place.offset(p.k_cache, h);
    load_pair<W, C>(p, token, k_pe, p.k_pe.count ? p.k_pe.step : 1, x, y);
    float values[kLaneValues];
    LaneValues<T>::load(k + at).to(values);
    if constexpr (C.normalizes != 0) {
      float squares = 0;
      for (const float v : values) squares += v * v;
      const float unit = 1.0f / sqrtf(warp_sum(squares) / float(kLatent) + p.eps);
      for (int e = 0; e < kLaneValues; ++e)
        values[e] *= unit * float(static_cast<const W*>(p.k_weight)[at + e]);
    }
    if constexpr (kIsRow<Code>) {
      const LatentRowOut row{out};
      store_codes(row, values);
      store_pair(&row.rope(0), x, y);
    } else {
      LaneValues<T>::of(values).store(out + at);
      store_pair(out + kLatent, x, y);
    }
  }
};

}  // namespace tensorcraft::kernel::append_kv
