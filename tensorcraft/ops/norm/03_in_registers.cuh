// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once, the bytes of a copy; mean and variance are one walk over registers. All loads of a
// thread are issued before the first is used: threads * slots * 16 bytes a block are in flight. A
// short row belongs to a warp or less and needs no barrier; a long one to the block, with 2, or
// with 1 for the squares alone. Demands: unit strides, rows of at most group * vector * slots
// elements.
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

struct InRegisters {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<HeldPart<C>>>();
    const auto [index, exists] = group_row<C>(p.rows);
    const Row<T, W, C> row(p, index);
    RowSlots<T, C, C.has_residual != 0> slots;
    slots.load(row.x, row.residual, int(p.cols));
    const auto s = statistics_of_held(row, slots, scratch);
    if (!exists) return;
    if (is_extreme<T>(s)) return store_extreme_row<T, W, C>(p, index);
    if (threadIdx.x % C.group == 0) store_statistics(p, index, s);
    slots.each([&](int column, const float(&h)[C.vector]) { row.store_neighbours(column, h, s); });
  }
};

}  // namespace tensorcraft::kernel::norm
