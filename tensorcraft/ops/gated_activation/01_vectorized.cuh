// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: accesses of 16 bytes, C.vectors of them in each half of the row before the first is
// needed, so a thread has 32 * C.vectors bytes in flight instead of 2 * sizeof(T). A block is a
// tile of the output: threads / group rows, group * vectors accesses wide; what it divides is its
// own number, once. Demands: unit strides, halves that begin at 16-byte boundaries.
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/store.cuh"
#include "tensorcraft/ops/gated_activation/gate.cuh"

namespace tensorcraft::kernel::gated_activation {

struct Vectorized {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    constexpr int N = kVectorSize<T>, kStep = C.group * N, kTile = kStep * C.vectors;
    const uint32_t line = p.by_tiles.quotient(blockIdx.x),
                   tile = blockIdx.x - line * p.by_tiles.divisor;
    const int64_t row = int64_t(line) * (C.threads / C.group) + threadIdx.x / C.group;
    if (row >= p.rows) return;
    const int64_t first = int64_t(tile) * kTile + threadIdx.x % C.group * N;
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row) + first;
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row) + first;
    const int64_t left = p.cols - first;

    const uint64_t policy = stream_policy(p.rows * p.cols * int64_t(sizeof(T)));
    const auto load = [&](const T* from) {
      if constexpr (C.vectors > 1) return Packed<T, N>::load_streamed(from, policy);
      return Packed<T, N>::load(from);  // few elements, which L2 holds
    };
    Packed<T, N> gates[C.vectors], ups[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      if (v * kStep >= left) continue;
      gates[v] = load(x + v * kStep);
      ups[v] = load(x + v * kStep + p.cols);
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      if (v * kStep >= left) continue;
      float gate[N], up[N];
      to_floats(gate, gates[v]);
      to_floats(up, ups[v]);
      for (int e = 0; e < N; ++e) gate[e] = gated<T, C.gate>(gate[e], up[e]);
      ptx::st_global_v4(out + v * kStep, bit_cast<ptx::Words4>(from_floats<T, N>(gate)));
    }
  }
};

}  // namespace tensorcraft::kernel::gated_activation
