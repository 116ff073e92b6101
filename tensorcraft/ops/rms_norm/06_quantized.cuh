// SPDX-License-Identifier: Apache-2.0
#pragma once
// The other output: codes of 8 bits, with one scale for all (p.scale) or one a row that is found
// here (p.scales). C.group threads, one or the block, share a row and read it for the squares, for
// its largest result where that is wanted, and for the codes. What is given is asked at run time,
// so that one kernel serves any of it. Any strides.
#include "tensorcraft/device/code_row.cuh"
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

template <class T, class W, Config C>
struct QuantizedRow : CodeRow<T, C, Params> {
  using CodeRow<T, C, Params>::CodeRow, CodeRow<T, C, Params>::p;

  TC_DEVICE float result(int64_t i, float h, float scale) const {
    return h * scale * (p.weight ? float(static_cast<const W*>(p.weight)[i]) : 1.0f);
  }
};

template <class T, class W, class Code, Config C>
TC_DEVICE void quantized(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  constexpr int kRows = C.threads / C.group;
  const int lane = int(threadIdx.x) % C.group;
  for (int64_t index = int64_t(blockIdx.x) * kRows + threadIdx.x / C.group; index < p.rows;
       index += int64_t(gridDim.x) * kRows) {
    const QuantizedRow<T, W, C> row(p, index);
    float squares = 0, amax = 0, unit = p.scale;
    for (int64_t i = lane; i < p.cols; i += C.group) squares += row.load(i) * row.load(i);
    squares = group_reduce<C.group>(scratch, squares, Sum());
    const float scale = scale_of(p, squares);
    if (p.scales) {
      for (int64_t i = lane; i < p.cols; i += C.group)
        amax = fmax_nan(amax, fabsf(row.result(i, row.load(i), scale)));
      unit = code_scale<Code>(group_reduce<C.group>(scratch, amax, Max()));
      if (lane == 0) p.scales[index] = unit;
    }
    Code* codes = static_cast<Code*>(p.out) + p.maps.offset<C.nested>(Params::kOut, index);
    for (int64_t i = lane; i < p.cols; i += C.group) {
      const float h = row.load(i);
      codes[i * p.out_step] = to_code<Code>(row.result(i, h, scale) / unit);
      if (row.residual_out) row.residual_out[i * p.residual_out_step] = T(h);
    }
  }
}

}  // namespace tensorcraft::kernel::rms_norm
