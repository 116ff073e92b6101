// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one pair; any strides. Each divides its index into token, head and pair, and finds
// cos and sin for itself, though all heads of a token share them.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/rope/angle.cuh"

namespace tensorcraft::kernel::rope {

template <class W>
TC_DEVICE Rotation rotation_at(const Params& p, int64_t position, int pair) {
  if (!p.cos) return rotation(position, frequency(pair, p.log2_step));
  if (!is_cached(p, position)) return {kNan, kNan};
  return {float(static_cast<const W*>(p.cos)[position * p.cos_row + pair * p.cos_step]),
          float(static_cast<const W*>(p.sin)[position * p.sin_row + pair * p.sin_step])};
}

struct Naive {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t heads = p.x.heads + p.k.heads;
    const int pair = int(i % p.half);
    const int64_t token = i / p.half / heads;
    int64_t head = i / p.half % heads;
    if (token >= p.tokens) return;
    const bool is_x = head < p.x.heads;
    const Heads& t = is_x ? p.x : p.k;
    if (!is_x) head -= p.x.heads;

    const Rotation r = rotation_at<W>(p, position_of(p, token, token % p.seq), pair);
    const bool halves = C.style == Style::half;
    const int64_t a = halves ? pair : 2 * pair, b = halves ? pair + p.half : 2 * pair + 1;
    const T* in = static_cast<const T*>(t.in) +
                  row_offset(p, is_x ? Params::kX : Params::kK, token) + head * t.in_head;
    T* out = static_cast<T*>(t.out) + row_offset(p, is_x ? Params::kXOut : Params::kKOut, token) +
             head * t.out_head;
    const float x = float(in[a * t.in_step]), y = float(in[b * t.in_step]);
    out[a * t.out_step] = T(rotated_first(x, y, r.cos, r.sin));
    out[b * t.out_step] = T(rotated_second(x, y, r.cos, r.sin));
  }
};

}  // namespace tensorcraft::kernel::rope
