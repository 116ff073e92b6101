// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once, the bytes of a copy, and the variance is a second pass over registers. A short row belongs
// to a warp or less and needs no barrier. Demands: dense tensors, rows of at most group * vector *
// slots elements.
#include "tensorcraft/ops/group_norm/row.cuh"

namespace tensorcraft::kernel::group_norm {

struct Reductions {
  BlockReduce<float> mean, squares;
};

struct InRegisters {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = static_shared<Reductions>();
    const auto [row, exists] = group_row<C>(p.rows);
    const T* x = static_cast<const T*>(p.x) + row * p.cols;
    RowSlots<T, C> slots;
    slots.load(x, nullptr, int(p.cols));
    Statistics s{finite_or_zero(float(x[0])), 0, 0};
    s.shift = slots.sum(shared.mean, [&](float h) { return h - s.pivot; }) * p.inverse_cols;
    const float squares = slots.sum(shared.squares, [&](float h) {
      const float d = h - s.pivot - s.shift;
      return d * d;
    });
    s.rstd = rsqrtf(squares * p.inverse_cols + p.eps);
    if (!exists) return;
    if (is_extreme<T>(s.rstd)) return store_extreme_row<T, W, C>(p, row);
    T* out = static_cast<T*>(p.out) + row * p.cols;
    const int64_t channel = first_channel(p, row);
    slots.each([&](int column, const float(&h)[C.vector]) {
      store_neighbours<T, W, C>(p, out, channel, uint32_t(column), h, s);
    });
  }
};

}  // namespace tensorcraft::kernel::group_norm
