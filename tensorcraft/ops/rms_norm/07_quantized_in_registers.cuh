// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as in in_registers, the threads of a row hold it, here until its results and their
// largest are known: one read, and a write of a byte an element. Two kernels, a norm and quantize,
// move the results once more each way. Demands: unit strides, rows of at most group * vector *
// slots elements.
#include "tensorcraft/device/code_row.cuh"
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

struct QuantizedReductions {
  BlockReduce<float> squares, amax;
};

template <class T, class W, class Code, Config C>
TC_DEVICE void quantized_in_registers(const Params& p) {
  auto& shared = static_shared<QuantizedReductions>();
  const auto [index, exists] = group_row<C>(p.rows);
  const Row<T, W, C> row(p, index);
  RowSlots<T, C, C.has_residual != 0> slots;
  slots.load(row.x, row.residual, int(p.cols));
  const float scale = row.scale(slots.sum(shared.squares, [](float h) { return h * h; }));
  float y[C.slots][C.vector];
#pragma unroll
  for (int i = 0; i < C.slots; ++i) {
    if (!slots.has(i)) continue;
    slots.floats(i, y[i]);
    if constexpr (C.has_residual)
      if (exists && row.residual_out) store_floats(row.residual_out + slots.column(i), y[i]);
    float weight[C.vector];
    for (int e = 0; e < C.vector; ++e) weight[e] = 1;
    if constexpr (C.has_weight)
      load_constant_floats(weight, static_cast<const W*>(p.weight) + slots.column(i));
    for (int e = 0; e < C.vector; ++e) y[i][e] = y[i][e] * scale * weight[e];
  }
  store_code_row<Code, C>(p, index, exists, slots, y, shared.amax);
}

}  // namespace tensorcraft::kernel::rms_norm
