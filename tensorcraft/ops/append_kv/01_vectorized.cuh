// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a thread keeps its columns, 16 bytes in either half of a head, and walks over the
// heads of its token, those of q, k and v. So slot, position, cos and sin are found once for all of
// them, and neighbouring threads move neighbours. Time is that of moving q twice, k and v, and what
// they become. Demands: unit strides, halves of whole 16-byte units, k and v of one head_dim; all
// of a head rotates or nothing.
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/append_kv/token.cuh"

namespace tensorcraft::kernel::append_kv {

// N elements into a cache.
template <class Code, int N>
TC_DEVICE void store_stored(Code* to, float (&x)[N], float scale) {
  if constexpr (kIsCode<Code>) {
    const Divisor<Code> divisor(scale);
    for (int e = 0; e < N; ++e) x[e] = divisor.divide(divisor.prepared(x[e]));
    store_vector(to, to_codes<Code, true>(x));
  } else {
    if (scale != 1.f)
      for (int e = 0; e < N; ++e) x[e] /= scale;
    from_floats<Code, N>(x).store(to);
  }
}

struct Vectorized {
  template <class T, class Code, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int N = kVectorSize<T>, kShare = C.lanes * C.heads;
    const int64_t own = int64_t(blockIdx.x) * (C.threads / kShare) + threadIdx.x / kShare;
    const bool exists = own < p.tokens;
    const int64_t token = exists ? own : 0;  // a thread without a token takes part in sums
    const int heads = p.q.count + p.k.count + p.v.count, half = p.k.dim / 2;
    const int col = int(threadIdx.x % C.lanes) * N;
    const bool has_columns = exists && col < half;
    const Place place = place_of(p, token);

    float cos[N], sin[N];
    if constexpr (C.rotates != 0) {
      const int64_t at = position_of(p, token);
      for (int e = 0; e < N; ++e) cos[e] = sin[e] = kNan;
      if (at >= 0 && has_columns) {
        load_constant_floats(cos, static_cast<const W*>(p.cos) + at * p.cos_row + col);
        load_constant_floats(sin, static_cast<const W*>(p.sin) + at * p.sin_row + col);
      }
    }
#pragma unroll 1
    for (int first = 0; first < heads; first += C.heads) {
      int h = first + int(threadIdx.x / C.lanes % C.heads);
      const bool is_q = h < p.q.count, is_k = !is_q && h < p.q.count + p.k.count;
      const bool has_head = has_columns && h < heads && (is_q || place.block >= 0);
      h -= is_q ? 0 : is_k ? p.q.count : p.q.count + p.k.count;
      const Heads& from = is_q ? p.q : is_k ? p.k : p.v;
      const int tensor = is_q ? Params::kQ : is_k ? Params::kK : Params::kV;
      float x[N], y[N];
      for (int e = 0; e < N; ++e) x[e] = y[e] = 0;
      if (has_head) {
        const T* in =
            static_cast<const T*>(from.in) + row_offset(p, tensor, token) + h * from.head + col;
        to_floats(x, Packed<T, N>::load(in));
        to_floats(y, Packed<T, N>::load(in + half));
      }
      if constexpr (C.normalizes != 0) {
        float squares = 0;
        for (int e = 0; e < N; ++e) squares += x[e] * x[e] + y[e] * y[e];
        squares = warp_reduce<C.lanes>(squares, Sum());
        const auto* weight = static_cast<const W*>(is_q ? p.q_weight : is_k ? p.k_weight : nullptr);
        if (weight && has_head) {
          const float unit = 1.0f / sqrtf(squares / float(2 * half) + p.eps);
          float w[N];
          load_constant_floats(w, weight + col);
          for (int e = 0; e < N; ++e) x[e] *= unit * w[e];
          load_constant_floats(w, weight + half + col);
          for (int e = 0; e < N; ++e) y[e] *= unit * w[e];
        }
      }
      if (!has_head) continue;
      if constexpr (C.rotates != 0)
        if (is_q || is_k)
          for (int e = 0; e < N; ++e) rotate(x[e], y[e], {cos[e], sin[e]});
      if (is_q) {
        T* out =
            static_cast<T*>(p.q_out) + row_offset(p, Params::kQOut, token) + h * p.q_out_head + col;
        from_floats<T, N>(x).store(out);
        from_floats<T, N>(y).store(out + half);
        continue;
      }
      const Cache& cache = is_k ? p.k_cache : p.v_cache;
      Code* out = static_cast<Code*>(cache.data) + place.offset(cache, h) + col;
      const float scale = scale_of(p, is_k, token, h);
      store_stored(out, x, scale);
      store_stored(out + half, y, scale);
    }
  }
};

}  // namespace tensorcraft::kernel::append_kv
