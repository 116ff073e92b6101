// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two rungs of dequantize: (q - zero point) * scale, in float and rounded once.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/quantize/scale.cuh"

namespace tensorcraft::kernel::quantize {

// A whole tensor's only scale has strides of 0, and nothing is divided to find it.
TC_DEVICE Scale scale_for(const Params& p, int64_t row, int64_t col_tile) {
  return given_scale(p,
                     p.tiles.scale_at(p.tiles.scale_row ? p.tiles.row_tile_of(row) : 0, col_tile));
}

// One thread, one element; any strides. Each divides its index, and its column to find its scale.
struct DequantizeNaive {
  template <class Q, class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t row = i / p.tiles.cols, col = i % p.tiles.cols;
    if (row >= p.tiles.rows) return;
    const Scale s = scale_for(p, row, col / p.tiles.tile_cols);
    const Q q = static_cast<const Q*>(p.x)[row_offset(p, Params::kX, row) + col * p.x_step];
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row) + col * p.out_step;
    *out = T((float(q) - s.zero_point) * s.scale);
  }
};

// What changed: C.slots accesses of a thread in flight, each of 16 bytes of the result; a thread
// finds one scale for C.vector elements. Demands: unit strides, rows of whole aligned accesses.
struct DequantizeVectorized {
  template <class Q, class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int kStep = C.group * C.vector, kTile = kStep * C.slots, kBlock = 128;
    const uint32_t tiles = uint32_t((p.tiles.cols + kTile - 1) / kTile);
    const int64_t row = int64_t(blockIdx.x / tiles) * (C.threads / C.group) + threadIdx.x / C.group;
    if (row >= p.tiles.rows) return;
    const int64_t first = int64_t(blockIdx.x % tiles) * kTile + threadIdx.x % C.group * C.vector;
    const Q* x = static_cast<const Q*>(p.x) + row_offset(p, Params::kX, row) + first;
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row) + first;
    AlignedVector<Q, C.vector> q[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      if (first + s * kStep < p.tiles.cols) q[s] = load_vector<C.vector>(x + s * kStep);
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      if (first + s * kStep >= p.tiles.cols) continue;
      const Scale scale =
          scale_for(p, row, p.tiles.col_tiles > 1 ? (first + s * kStep) / kBlock : 0);
      float values[C.vector];
      for (int e = 0; e < C.vector; ++e)
        values[e] = (float(q[s][e]) - scale.zero_point) * scale.scale;
      store_floats(out + s * kStep, values);
    }
  }
};

}  // namespace tensorcraft::kernel::quantize
