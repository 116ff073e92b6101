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

template <int kPairs>
struct Rotations {
  float cos[kPairs], sin[kPairs];
};

// The rotations of the pairs from `pair` on.
template <class W, Config C, int kPairs>
TC_DEVICE void find_rotations(Rotations<kPairs>& r, const Params& p, int64_t position, int pair) {
  if constexpr (!C.has_cache) {
    double turns = frequency(pair, p.log2_step);
    for (int e = 0; e < kPairs; ++e, turns *= p.ratio) {
      const Rotation one = rotation(position, turns);
      r.cos[e] = one.cos;
      r.sin[e] = one.sin;
    }
  } else if (is_cached(p, position)) {
    load_constant_floats(r.cos, static_cast<const W*>(p.cos) + position * p.cos_row + pair);
    load_constant_floats(r.sin, static_cast<const W*>(p.sin) + position * p.sin_row + pair);
  } else {
    for (int e = 0; e < kPairs; ++e) r.cos[e] = r.sin[e] = kNan;
  }
}

// Two accesses of one head, N elements each, with the rotations of their N pairs: a pair has an
// element in each, or lies in one of them, each of which has rotations of its own then.
template <int N, int kParts>
TC_DEVICE void rotate_all(float (&a)[N], float (&b)[N],
                          const Rotations<N / kParts> (&parts)[kParts]) {
  for (int e = 0; e < N; ++e) {
    float* const pairs = e < N / 2 ? a : b;
    float& first = kParts == 1 ? a[e] : pairs[2 * e % N];
    float& second = kParts == 1 ? b[e] : pairs[2 * e % N + 1];
    const Rotations<N / kParts>& r = parts[e * kParts / N];
    rotate(first, second, {r.cos[e % (N / kParts)], r.sin[e % (N / kParts)]});
  }
}

struct Vectorized {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int N = kVectorSize<T>, kShare = C.lanes * C.heads;
    constexpr int kParts = C.style == Style::half ? 1 : 2;  // runs of pairs in a thread's columns
    const uint32_t token = blockIdx.x * (C.threads / kShare) + threadIdx.x / kShare;
    if (token >= uint32_t(p.tokens)) return;
    const int x_heads = int(p.x.heads), heads = x_heads + int(p.k.heads);

    const uint64_t policy = stream_policy(p.tokens * heads * p.half * 2 * int64_t(sizeof(T)));
    for (int col = int(threadIdx.x % C.lanes) * N; col < p.half; col += C.lanes * N) {
      Packed<T, N> a[C.unroll], b[C.unroll];
      Rotations<N / kParts> parts[kParts];
#pragma unroll 1
      for (int first = int(threadIdx.x / C.lanes % C.heads); first < heads;
           first += C.heads * C.unroll) {
#pragma unroll
        for (int u = 0; u < C.unroll; ++u) {
          const int head = first + u * C.heads;
          if (head >= heads) continue;
          const bool is_x = head < x_heads;
          const Heads& t = is_x ? p.x : p.k;
          const T* in = static_cast<const T*>(t.in) + col +
                        row_offset(p, is_x ? Params::kX : Params::kK, token) +
                        (is_x ? head : head - x_heads) * t.in_head;
          a[u] = Packed<T, N>::load_streamed(in, policy);
          b[u] = Packed<T, N>::load_streamed(in + p.half, policy);
        }
        if (first < C.heads) {  // while the first heads are under way
          const uint32_t index = token - p.by_seq.quotient(token) * p.by_seq.divisor;
          const int64_t position = position_of(p, token, index);
          for (int i = 0; i < kParts; ++i)
            find_rotations<W, C>(parts[i], p, position, (col + i * p.half) / kParts);
        }
#pragma unroll
        for (int u = 0; u < C.unroll; ++u) {
          const int head = first + u * C.heads;
          if (head >= heads) continue;
          const bool is_x = head < x_heads;
          const Heads& t = is_x ? p.x : p.k;
          T* out = static_cast<T*>(t.out) + col +
                   row_offset(p, is_x ? Params::kXOut : Params::kKOut, token) +
                   (is_x ? head : head - x_heads) * t.out_head;
          float x[N], y[N];
          to_floats(x, a[u]);
          to_floats(y, b[u]);
          rotate_all(x, y, parts);
          ptx::st_global_v4(out, bit_cast<ptx::Words4>(from_floats<T, N>(x)));
          ptx::st_global_v4(out + p.half, bit_cast<ptx::Words4>(from_floats<T, N>(y)));
        }
      }
    }
  }
};

}  // namespace tensorcraft::kernel::rope
