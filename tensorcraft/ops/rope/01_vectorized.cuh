// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a thread keeps its columns and walks over heads, so cos and sin are found once for
// all heads of a token, x and k in one launch. It has C.unroll heads in flight, 32 bytes of each:
// one access of 16 bytes in either half of the head. Demands: unit strides, heads and caches that
// begin at 16-byte boundaries, halves of whole accesses.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/ptx/store.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/rope/angle.cuh"

namespace tensorcraft::kernel::rope {

// cos and sin for kCount pairs from `pair` on.
template <int kCount, class W, Config C>
TC_DEVICE void find_rotations(float* cos, float* sin, const Params& p, int64_t position, int pair) {
  float c[kCount], s[kCount];
  if constexpr (!C.has_cache) {
    double turns = frequency(pair, p.log2_step);
    for (int e = 0; e < kCount; ++e, turns *= p.step) {
      const Rotation r = rotation(position, turns);
      c[e] = r.cos;
      s[e] = r.sin;
    }
  } else if (is_cached(p, position)) {
    load_constant_floats(c, static_cast<const W*>(p.cos) + position * p.cos_row + pair);
    load_constant_floats(s, static_cast<const W*>(p.sin) + position * p.sin_row + pair);
  } else {
    for (int e = 0; e < kCount; ++e) c[e] = s[e] = kNan;
  }
  for (int e = 0; e < kCount; ++e) {
    cos[e] = c[e];
    sin[e] = s[e];
  }
}

// Two accesses of one head, N elements each, with the rotations of their N pairs: a pair has an
// element in each, or lies in one of them.
template <int N, Config C>
TC_DEVICE void rotate(float (&a)[N], float (&b)[N], const float (&cos)[N], const float (&sin)[N]) {
  for (int e = 0; e < N; ++e) {
    constexpr bool halves = C.style == Style::half;
    float* const pairs = e < N / 2 ? a : b;
    float& first = halves ? a[e] : pairs[2 * e % N];
    float& second = halves ? b[e] : pairs[2 * e % N + 1];
    const float x = first, y = second;
    first = x * cos[e] - y * sin[e];
    second = y * cos[e] + x * sin[e];
  }
}

template <class T, class W, Config C>
TC_DEVICE void vectorized(const Params& p) {
  constexpr int N = kVectorSize<T>, kShare = C.lanes * C.heads;
  const int64_t token = int64_t(blockIdx.x) * (C.threads / kShare) + threadIdx.x / kShare;
  if (token >= p.tokens) return;
  const int64_t heads = p.x.heads + p.k.heads;
  const auto at = [&](int tensor) { return p.maps.offset<C.nested>(tensor, token); };
  const T* x_in = static_cast<const T*>(p.x.in) + at(Params::kX);
  const T* k_in = static_cast<const T*>(p.k.in) + at(Params::kK);
  T* x_out = static_cast<T*>(p.x.out) + at(Params::kXOut);
  T* k_out = static_cast<T*>(p.k.out) + at(Params::kKOut);

  const uint64_t policy = stream_policy(p.tokens * heads * p.half * 2 * int64_t(sizeof(T)));
  for (int col = int(threadIdx.x % C.lanes) * N; col < p.half; col += C.lanes * N) {
    Packed<T, N> a[C.unroll], b[C.unroll];
    const auto load = [&](int64_t first) {
#pragma unroll
      for (int u = 0; u < C.unroll; ++u) {
        const int64_t head = first + u * C.heads;
        if (head >= heads) continue;
        const bool is_x = head < p.x.heads;
        const T* in = (is_x ? x_in : k_in) +
                      (head - (is_x ? 0 : p.x.heads)) * (is_x ? p.x.in_head : p.k.in_head);
        a[u] = Packed<T, N>::load_streamed(in + col, policy);
        b[u] = Packed<T, N>::load_streamed(in + col + p.half, policy);
      }
    };
    int64_t first = threadIdx.x / C.lanes % C.heads;
    load(first);  // under way while the rotations are found

    const auto index = uint32_t(token) - p.by_seq.quotient(uint32_t(token)) * p.by_seq.divisor;
    const int64_t position = position_of<bool(C.nested)>(p, token, index);
    float cos[N], sin[N];
    if constexpr (C.style == Style::half) {
      find_rotations<N, W, C>(cos, sin, p, position, col);
    } else {
      find_rotations<N / 2, W, C>(cos, sin, p, position, col / 2);
      find_rotations<N / 2, W, C>(cos + N / 2, sin + N / 2, p, position, (col + p.half) / 2);
    }
    for (; first < heads; load(first)) {
#pragma unroll
      for (int u = 0; u < C.unroll; ++u) {
        const int64_t head = first + u * C.heads;
        if (head >= heads) continue;
        const bool is_x = head < p.x.heads;
        T* out = (is_x ? x_out : k_out) +
                 (head - (is_x ? 0 : p.x.heads)) * (is_x ? p.x.out_head : p.k.out_head);
        float x[N], y[N];
        to_floats(x, a[u]);
        to_floats(y, b[u]);
        rotate<N, C>(x, y, cos, sin);
        ptx::st_global_v4(out + col, bit_cast<ptx::Words4>(from_floats<T, N>(x)));
        ptx::st_global_v4(out + col + p.half, bit_cast<ptx::Words4>(from_floats<T, N>(y)));
      }
      first += C.heads * C.unroll;
    }
  }
}

}  // namespace tensorcraft::kernel::rope
