// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once, the bytes of a copy, and the variance is a second pass over registers. All loads of a
// thread are issued before the first is used: threads * slots * 16 bytes a block are in flight. A
// short row belongs to a warp or less and needs no barrier; a long one to the block, with 4.
// Demands: unit strides, rows of at most group * vector * slots elements.
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

// The part of a row that one thread holds: accesses `first`, `first + kStep`, ... below `cols`.
template <class T, class W, Config C>
struct Slots {
  static constexpr int kStep = C.group * C.vector;
  float h[C.slots][C.vector];
  int first, cols;

  TC_DEVICE Slots(const Row<T, W, C>& row, int columns)
      : first(int(threadIdx.x) % C.group * C.vector), cols(columns) {
    AlignedVector<T, C.vector> x[C.slots], r[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      x[s] = r[s] = {};
      if (first + s * kStep < cols) {
        x[s] = load_vector<C.vector>(row.x + first + s * kStep);
        if constexpr (C.has_residual)
          r[s] = load_vector<C.vector>(row.residual + first + s * kStep);
      }
    }
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      for (int e = 0; e < C.vector; ++e) {
        h[s][e] = float(x[s][e]);
        if constexpr (C.has_residual) h[s][e] += float(r[s][e]);
      }
  }

  // The sum of f(h) over the row.
  template <class F>
  TC_DEVICE float sum(BlockReduce<float>& scratch, F f) const {
    float total = 0;
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      if (first + s * kStep < cols)
        for (int e = 0; e < C.vector; ++e) total += f(h[s][e]);
    return group_reduce<C.group>(scratch, total, Sum());
  }

  TC_DEVICE void store(const Row<T, W, C>& row, const Statistics& stats) const {
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      if (first + s * kStep < cols) row.store_neighbours(first + s * kStep, h[s], stats);
  }
};

template <class T, class W, Config C>
TC_DEVICE void in_registers(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  const int64_t index = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
  const bool exists = index < p.rows;  // threads without a row still take part in shuffles
  const Row<T, W, C> row(p, exists ? index : 0);
  const Slots<T, W, C> slots(row, exists ? int(p.cols) : 0);
  Statistics s{row.pivot(), 0, 0};
  s.shift = slots.sum(scratch, [&](float h) { return h - s.pivot; }) / float(p.cols);
  const float squares = slots.sum(scratch, [&](float h) {
    const float d = s.centered(h);
    return d * d;
  });
  s.rstd = rsqrtf(squares / float(p.cols) + p.eps);
  slots.store(row, s);
  if (exists && threadIdx.x % C.group == 0) store_statistics(p, index, s);
}

}  // namespace tensorcraft::kernel::layer_norm
