// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the output; any strides. Each thread divides its index by the columns
// and has two accesses of sizeof(T) bytes in flight.
#include "tensorcraft/ops/gated_activation/gate.cuh"

namespace tensorcraft::kernel::gated_activation {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t row = i / p.cols, col = i % p.cols;
    if (row >= p.rows) return;
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    const auto gate = float(x[col * p.x_step]), up = float(x[(p.cols + col) * p.x_step]);
    out[col * p.out_step] = T(gated<T, C.gate>(gate, up));
  }
};

}  // namespace tensorcraft::kernel::gated_activation
