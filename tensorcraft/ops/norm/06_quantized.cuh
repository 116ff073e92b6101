// SPDX-License-Identifier: Apache-2.0
#pragma once
// The other output: codes of 8 bits, with one scale for all (p.scale) or one a row that is found
// here (p.scales). C.group threads, one or the block, share a row and read it for its statistics,
// for its largest result if that is wanted, and for the codes. What is given and the activation are
// asked at run time, so that one kernel serves any of it. Any strides.
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

// A row of which it is asked at run time what is given; h is x + residual.
template <class T, class W, Config C>
struct QuantizedRow {
  const RowParams<Params, C>& p;
  const T *x, *residual;
  T* residual_out;

  TC_DEVICE QuantizedRow(const RowParams<Params, C>& params, int64_t row)
      : p(params),
        x(static_cast<const T*>(p.x) + row_offset(p, Params::kX, row)),
        residual(static_cast<const T*>(p.residual)),
        residual_out(static_cast<T*>(p.residual_out)) {
    if (residual) residual += row_offset(p, Params::kResidual, row);
    if (residual_out) residual_out += row_offset(p, Params::kResidualOut, row);
  }
  TC_DEVICE float load(int64_t i) const {
    const float h = float(x[i * p.x_step]);
    return residual ? h + float(residual[i * p.residual_step]) : h;
  }
  // Of two loads, so that the branch of one stays out of the sum.
  TC_DEVICE float square(int64_t i) const { return load(i) * load(i); }

  TC_DEVICE float result(int64_t i, float h, const Statistics<C.form>& s) const {
    const float weight = p.weight ? float(static_cast<const W*>(p.weight)[i]) : 1.0f;
    if constexpr (C.form == Form::layer) {
      const float bias = p.bias ? float(static_cast<const W*>(p.bias)[i]) : 0.0f;
      return activate(p.activation, s.centered(h) * s.rstd * weight + bias);
    }
    return s.centered(h) * s.rstd * weight;
  }
};

struct Quantized {
  template <class T, class W, class Code, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    constexpr int kRows = C.threads / C.group;
    const int lane = int(threadIdx.x) % C.group;
    for (int64_t index = int64_t(blockIdx.x) * kRows + threadIdx.x / C.group; index < p.rows;
         index += int64_t(gridDim.x) * kRows) {
      const QuantizedRow<T, W, C> row(p, index);
      const auto s = statistics_of<T, C>(row, lane, scratch);
      float amax = 0, unit = p.scale;
      if (p.scales) {
        for (int64_t i = lane; i < p.cols; i += C.group)
          amax = fmax_nan(amax, fabsf(row.result(i, row.load(i), s)));
        unit = code_scale<Code>(group_reduce<C.group>(scratch, amax, Max()));
        if (lane == 0) p.scales[index] = unit;
      }
      if (lane == 0) store_statistics(p, index, s);
      Code* codes = static_cast<Code*>(p.out) + row_offset(p, Params::kOut, index);
      for (int64_t i = lane; i < p.cols; i += C.group) {
        const float h = row.load(i);
        codes[i * p.out_step] = to_code<Code>(row.result(i, h, s) / unit);
        if (row.residual_out) row.residual_out[i * p.residual_out_step] = T(h);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::norm
