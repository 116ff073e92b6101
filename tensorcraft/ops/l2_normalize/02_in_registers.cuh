// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once, the bytes of a copy, in 16-byte accesses that are all issued before the first is used. A
// short row belongs to a warp or less and needs no barrier. One division a row instead of one an
// element. Demands: unit strides along the axis, rows of at most group * vector * slots elements.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/l2_normalize/params.h"

namespace tensorcraft::kernel::l2_normalize {

struct InRegisters {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    const auto [row, exists] = group_row<C>(p.rows);
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    RowSlots<T, C> slots;
    slots.load(x, nullptr, int(p.cols));
    const float squares = slots.sum(scratch, [](float v) { return v * v; });
    const float scale = 1.0f / fmax_nan(sqrtf(squares), p.eps);
    if (!exists) return;
    if (store_extreme_unit<T, C, true>(p, scale, x, out)) return;
    slots.each([&](int column, float(&v)[C.vector]) {
      for (int e = 0; e < C.vector; ++e) v[e] *= scale;
      store_floats(out + column, v);
    });
  }
};

}  // namespace tensorcraft::kernel::l2_normalize
