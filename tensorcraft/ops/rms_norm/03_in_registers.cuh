// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once, the bytes of a copy. All loads of a thread are issued before the first is used: threads *
// slots * 16 bytes a block are in flight. A short row belongs to a warp or less and needs no
// barrier; a long one to the block, with one. Demands: unit strides, rows of at most group * vector
// * slots elements.
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

template <class T, class W, Config C>
TC_DEVICE void in_registers(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  const auto [index, exists] = group_row<C>(p.rows);
  const Row<T, W, C> row(p, index);
  RowSlots<T, C, C.has_residual != 0> slots;
  slots.load(row.x, row.residual, int(p.cols));
  const float scale = row.scale(slots.sum(scratch, [](float h) { return h * h; }));
  if (!exists) return;
  slots.each(
      [&](int column, const float(&h)[C.vector]) { row.store_neighbours(column, h, scale); });
}

}  // namespace tensorcraft::kernel::rms_norm
