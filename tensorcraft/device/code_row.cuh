// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/quantize.cuh"

namespace tensorcraft {

// One row of x, residual and residual_out of a norm that stores codes; h is x + residual where that
// is given, which is asked at run time. Params is an operator's, with the fields named here.
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

}  // namespace tensorcraft
