// SPDX-License-Identifier: Apache-2.0
#pragma once
// The other output: codes of 8 bits, with one scale for all (p.scale) or one a row that is found
// here (p.scales). C.group threads, one or the block, share a row and read it for the mean, for the
// variance about it, for its largest result where that is wanted, and for the codes. What is given
// and the activation are asked at run time, so that one kernel serves any of it. Any strides.
#include "tensorcraft/device/code_row.cuh"
#include "tensorcraft/ops/layer_norm/row.cuh"

namespace tensorcraft::kernel::layer_norm {

template <class T, class W, Config C>
struct QuantizedRow : CodeRow<T, C, Params> {
  using CodeRow<T, C, Params>::CodeRow, CodeRow<T, C, Params>::p;

  TC_DEVICE float result(int64_t i, float h, const Statistics& s) const {
    const float weight = p.weight ? float(static_cast<const W*>(p.weight)[i]) : 1.0f;
    const float bias = p.bias ? float(static_cast<const W*>(p.bias)[i]) : 0.0f;
    return activate(p.activation, s.centered(h) * s.rstd * weight + bias);
  }
};

// Mean and variance of a row by the threads that share it.
template <class T, class W, Config C>
TC_DEVICE Statistics statistics_of(const QuantizedRow<T, W, C>& row, BlockReduce<float>& scratch) {
  const Params& p = row.p;
  const int lane = int(threadIdx.x) % C.group;
  const float first = row.load(0);
  Statistics s{first - first == 0.0f ? first : 0.0f, 0, 0};
  float sum = 0, squares = 0, rest = 0;
  for (int64_t i = lane; i < p.cols; i += C.group) sum += row.load(i) - s.pivot;
  s.shift = group_reduce<C.group>(scratch, sum, Sum()) * p.inverse_cols;
  for (int64_t i = lane; i < p.cols; i += C.group) {
    const float d = s.centered(row.load(i));
    squares += d * d;
    rest += d;
  }
  // What one long sum rounded away.
  s.shift += group_reduce<C.group>(scratch, rest, Sum()) * p.inverse_cols;
  squares = group_reduce<C.group>(scratch, squares, Sum());
  s.rstd = rsqrtf(squares * p.inverse_cols + p.eps);
  return s;
}

template <class T, class W, class Code, Config C>
TC_DEVICE void quantized(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  constexpr int kRows = C.threads / C.group;
  const int lane = int(threadIdx.x) % C.group;
  for (int64_t index = int64_t(blockIdx.x) * kRows + threadIdx.x / C.group; index < p.rows;
       index += int64_t(gridDim.x) * kRows) {
    const QuantizedRow<T, W, C> row(p, index);
    const Statistics s = statistics_of<T, W, C>(row, scratch);
    float amax = 0, unit = p.scale;
    if (p.scales) {
      for (int64_t i = lane; i < p.cols; i += C.group)
        amax = fmax_nan(amax, fabsf(row.result(i, row.load(i), s)));
      unit = code_scale<Code>(group_reduce<C.group>(scratch, amax, Max()));
      if (lane == 0) p.scales[index] = unit;
    }
    if (lane == 0) store_statistics(p, index, s);
    Code* codes = static_cast<Code*>(p.out) + p.maps.offset<C.nested>(Params::kOut, index);
    for (int64_t i = lane; i < p.cols; i += C.group) {
      const float h = row.load(i);
      codes[i * p.out_step] = to_code<Code>(row.result(i, h, s) / unit);
      if (row.residual_out) row.residual_out[i * p.residual_out_step] = T(h);
    }
  }
}

}  // namespace tensorcraft::kernel::layer_norm
