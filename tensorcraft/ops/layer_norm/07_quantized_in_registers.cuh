// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as in in_registers, the threads of a row hold it, here until its results and their
// largest are known: one read, and a write of a byte an element. Two kernels, a norm and quantize,
// move the results once more each way. Demands: unit strides, rows of at most group * vector *
// slots elements.
#include "tensorcraft/device/quantize.cuh"
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

struct QuantizedReductions {
  BlockReduce<float> mean, squares, amax;
};

template <class T, class W, class Code, Config C>
TC_DEVICE void quantized_in_registers(const Params& p) {
  auto& shared = static_shared<QuantizedReductions>();
  const auto [index, exists] = group_row<C>(p.rows);
  const Row<T, W, C> row(p, index);
  RowSlots<T, C, C.has_residual != 0> slots;
  slots.load(row.x, row.residual, int(p.cols));
  const float pivot = row.pivot();
  Statistics s =
      row.about(pivot, slots.sum(shared.mean, [&](float h) { return h - pivot; }) * p.inverse_cols);
  const float squares = slots.sum(shared.squares, [&](float h) {
    const float d = s.centered(h);
    return d * d;
  });
  s.rstd = rsqrtf(squares * p.inverse_cols + p.eps);
  float y[C.slots][C.vector], amax = 0, unit = p.scale;
#pragma unroll
  for (int i = 0; i < C.slots; ++i) {
    if (!slots.has(i)) continue;
    slots.floats(i, y[i]);
    if constexpr (C.has_residual)
      if (exists && row.residual_out) store_floats(row.residual_out + slots.column(i), y[i]);
    finish(row, slots.column(i), y[i], s);
    for (int e = 0; e < C.vector; ++e) amax = fmax_nan(amax, fabsf(y[i][e]));
  }
  if (p.scales) {
    unit = code_scale<Code>(group_reduce_once<C.group>(shared.amax, amax, Max()));
    if (exists && threadIdx.x % C.group == 0) p.scales[index] = unit;
  }
  if (!exists) return;
  Code* codes = static_cast<Code*>(p.out) + p.maps.offset<C.nested>(Params::kOut, index);
#pragma unroll
  for (int i = 0; i < C.slots; ++i)
    if (slots.has(i)) store_codes(codes + slots.column(i), y[i], unit);
  if (threadIdx.x % C.group == 0) store_statistics(p, index, s);
}

}  // namespace tensorcraft::kernel::layer_norm
