// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as in in_registers, the threads of a row hold it, here until its results and their
// largest are known: one read, and a write of a byte an element. Two kernels, a norm and quantize,
// move the results once more each way. Demands: unit strides, rows of at most group * vector *
// slots elements.
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

// Stores the codes of what a group's threads hold of a row, `y` in the place of its slots, which is
// used up: by the row's own scale, which is stored too, if those are asked for, else by the given
// one. All threads of the block call. `scratch` serves nothing else.
template <class Code, Config C, class Slots>
TC_DEVICE void store_code_row(const RowParams<Params, C>& p, uint32_t row, bool exists,
                              const Slots& slots, float (&y)[C.slots][C.vector],
                              BlockReduce<float>& scratch) {
  float scale = p.scale, largest = 0;
#pragma unroll
  for (int s = 0; s < C.slots; ++s)
    for (int e = 0; slots.has(s) && e < C.vector; ++e) largest = fmax_nan(largest, fabsf(y[s][e]));
  if (p.scales) {
    scale = code_scale<Code>(group_reduce_once<C.group>(scratch, largest, Max()));
    if (exists && threadIdx.x % C.group == 0) p.scales[row] = scale;
  }
  if (!exists) return;
  const Divisor<Code> divisor(scale);
  if (!divisor.takes(largest)) {
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      for (int e = 0; slots.has(s) && e < C.vector; ++e) y[s][e] = divisor.prepared(y[s][e]);
  }
  Code* codes = static_cast<Code*>(p.out) + row_offset(p, Params::kOut, row);
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    if (!slots.has(s)) continue;
    for (float& v : y[s]) v = divisor.divide(v);
    store_vector(codes + slots.column(s), to_codes<Code, true>(y[s]));
  }
}

template <Config C>
struct QuantizedReductions {
  BlockReduce<HeldPart<C>> parts;
  BlockReduce<float> amax;
};

struct QuantizedInRegisters {
  template <class T, class W, class Code, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& shared = static_shared<QuantizedReductions<C>>();
    const auto [index, exists] = group_row<C>(p.rows);
    const Row<T, W, C> row(p, index);
    RowSlots<T, C, C.has_residual != 0> slots;
    slots.load(row.x, row.residual, int(p.cols));
    auto s = statistics_of_held(row, slots, shared.parts);
    correct_extreme<T, C>(row, s);
    float y[C.slots][C.vector];
#pragma unroll
    for (int i = 0; i < C.slots; ++i) {
      if (!slots.has(i)) continue;
      slots.floats(i, y[i]);
      if constexpr (C.has_residual)
        if (exists && row.residual_out) store_floats(row.residual_out + slots.column(i), y[i]);
      float weight[C.vector], bias[C.vector];
      for (int e = 0; e < C.vector; ++e) weight[e] = 1, bias[e] = 0;
      if constexpr (C.has_weight)
        load_constant_floats(weight, static_cast<const W*>(p.weight) + slots.column(i));
      if constexpr (C.has_bias)
        load_constant_floats(bias, static_cast<const W*>(p.bias) + slots.column(i));
      for (int e = 0; e < C.vector; ++e) y[i][e] = row.finish(y[i][e], weight[e], bias[e], s);
    }
    store_code_row<Code, C>(p, index, exists, slots, y, shared.amax);
    if (exists && threadIdx.x % C.group == 0) store_statistics(p, index, s);
  }
};

}  // namespace tensorcraft::kernel::norm
