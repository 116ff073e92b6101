// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/device/row_group.cuh"

namespace tensorcraft {

// One row of x, residual and residual_out of a norm that stores codes; h is x + residual if a
// residual is given, which is asked at run time. Params is an operator's, with the fields named
// here.
template <class T, auto C, class Params>
struct CodeRow {
  const Params& p;
  const T *x, *residual;
  T* residual_out;

  TC_DEVICE CodeRow(const Params& params, int64_t row)
      : p(params),
        x(static_cast<const T*>(p.x) + p.maps.template offset<C.nested>(Params::kX, row)),
        residual(static_cast<const T*>(p.residual)),
        residual_out(static_cast<T*>(p.residual_out)) {
    if (residual) residual += p.maps.template offset<C.nested>(Params::kResidual, row);
    if (residual_out) residual_out += p.maps.template offset<C.nested>(Params::kResidualOut, row);
  }
  TC_DEVICE float load(int64_t i) const {
    const float h = float(x[i * p.x_step]);
    return residual ? h + float(residual[i * p.residual_step]) : h;
  }
};

// Stores the codes of what a group's threads hold of a row, `y` in the place of its slots, which is
// used up: by the row's own scale, which is stored too, if those are asked for, else by the given
// one. All threads of the block call. `scratch` serves nothing else.
template <class Code, auto C, class Params, class Slots>
TC_DEVICE void store_code_row(const Params& p, uint32_t row, bool exists, const Slots& slots,
                              float (&y)[C.slots][C.vector], BlockReduce<float>& scratch) {
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
  Code* codes = static_cast<Code*>(p.out) + p.maps.template offset<C.nested>(Params::kOut, row);
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    if (!slots.has(s)) continue;
    for (float& v : y[s]) v = divisor.divide(v);
    store_vector(codes + slots.column(s), to_codes<Code, true>(y[s]));
  }
}

}  // namespace tensorcraft
