// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as in in_registers, the threads of a row hold it, here until its results and their
// largest are known: one read, and a write of a byte an element. Two kernels, a norm and quantize,
// move the results once more each way. Demands: unit strides, rows of at most group * vector *
// slots elements.
#include "tensorcraft/device/code_row.cuh"
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

// The results in column `i` and its neighbours, in the place of what they come from.
template <class T, class W, Config C>
TC_DEVICE void finish(const Row<T, W, C>& row, int i, float (&h)[C.vector], const Statistics& s) {
  float weight[C.vector], bias[C.vector];
  for (int e = 0; e < C.vector; ++e) weight[e] = 1, bias[e] = 0;
  if constexpr (C.has_weight) load_constant_floats(weight, static_cast<const W*>(row.p.weight) + i);
  if constexpr (C.has_bias) load_constant_floats(bias, static_cast<const W*>(row.p.bias) + i);
  for (int e = 0; e < C.vector; ++e) h[e] = row.finish(h[e], weight[e], bias[e], s);
}

template <Config C>
struct QuantizedReductions {
  BlockReduce<RowPart<C>> parts;
  BlockReduce<float> amax;
};

template <class T, class W, class Code, Config C>
TC_DEVICE void quantized_in_registers(const Params& p) {
  auto& shared = static_shared<QuantizedReductions<C>>();
  const auto [index, exists] = group_row<C>(p.rows);
  const Row<T, W, C> row(p, index);
  RowSlots<T, C, C.has_residual != 0> slots;
  slots.load(row.x, row.residual, int(p.cols));
  const float pivot = row.kHasPivot ? row.pivot() : 0;
  const RowPart<C> all = row_part(slots, pivot).template over_group<C.group>(shared.parts);
  Statistics s = row.about(pivot, all.mean);
  s.rstd = rsqrtf(all.variance(p.inverse_cols) + p.eps);
  float y[C.slots][C.vector];
#pragma unroll
  for (int i = 0; i < C.slots; ++i) {
    if (!slots.has(i)) continue;
    slots.floats(i, y[i]);
    if constexpr (C.has_residual)
      if (exists && row.residual_out) store_floats(row.residual_out + slots.column(i), y[i]);
    finish(row, slots.column(i), y[i], s);
  }
  store_code_row<Code, C>(p, index, exists, slots, y, shared.amax);
  if (exists && threadIdx.x % C.group == 0) store_statistics(p, index, s);
}

}  // namespace tensorcraft::kernel::layer_norm
