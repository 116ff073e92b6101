// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once, the bytes of a copy, and the variance is a second pass over registers. All loads of a
// thread are issued before the first is used: threads * slots * 16 bytes a block are in flight. A
// short row belongs to a warp or less and needs no barrier; a long one to the block, with 4.
// Demands: unit strides, rows of at most group * vector * slots elements.
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

template <class T, class W, Config C>
TC_DEVICE void in_registers(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  const int64_t index = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
  const bool exists = index < p.rows;  // threads without a row still take part in shuffles
  const Row<T, W, C> row(p, exists ? index : 0);
  RowSlots<C> slots;
  slots.template load<C.has_residual>(row.x, row.residual, int(p.cols));
  Statistics s{row.pivot(), 0, 0};
  s.shift = slots.sum(scratch, [&](float h) { return h - s.pivot; }) * p.inverse_cols;
  const float squares = slots.sum(scratch, [&](float h) {
    const float d = s.centered(h);
    return d * d;
  });
  s.rstd = rsqrtf(squares * p.inverse_cols + p.eps);
  if (!exists) return;
#pragma unroll
  for (int i = 0; i < C.slots; ++i)
    if (slots.has(i)) row.store_neighbours(slots.column(i), slots.h[i], s);
  if (threadIdx.x % C.group == 0) store_statistics(p, index, s);
}

}  // namespace tensorcraft::kernel::layer_norm
