// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/rms_norm/params.h"

namespace tensorcraft::kernel::rms_norm {

// The factor of a row whose squares add up to `squares`.
TC_DEVICE float scale_of(const Params& p, float squares) {
  return rsqrtf(squares * p.inverse_cols + p.eps);
}

// One row of x, residual, out and residual_out; h is x + residual. What every rung does with a row
// but adding it up.
template <class T, class W, Config C>
struct Row {
  const Params& p;
  const T *x, *residual;
  T *out, *residual_out;

  TC_DEVICE Row(const Params& params, int64_t row)
      : p(params),
        x(static_cast<const T*>(params.x) + params.maps.offset<C.nested>(Params::kX, row)),
        residual(nullptr),
        out(static_cast<T*>(params.out) + params.maps.offset<C.nested>(Params::kOut, row)),
        residual_out(nullptr) {
    if constexpr (C.has_residual) {
      residual =
          static_cast<const T*>(p.residual) + p.maps.offset<C.nested>(Params::kResidual, row);
      if (p.residual_out)
        residual_out =
            static_cast<T*>(p.residual_out) + p.maps.offset<C.nested>(Params::kResidualOut, row);
    }
  }

  TC_DEVICE float load(int64_t i) const {
    float h = float(x[i * p.x_step]);
    if constexpr (C.has_residual) h += float(residual[i * p.residual_step]);
    return h;
  }

  TC_DEVICE float scale(float squares) const { return scale_of(p, squares); }

  TC_DEVICE void store(int64_t i, float h, float scale) const {
    float weight = 1;
    if constexpr (C.has_weight) weight = float(static_cast<const W*>(p.weight)[i]);
    if constexpr (C.has_residual)
      if (residual_out) residual_out[i * p.residual_out_step] = T(h);
    out[i * p.out_step] = T(h * scale * weight);
  }

  // The same for C.vector neighbours from column i on, where every step is 1.
  TC_DEVICE void load_neighbours(float (&h)[C.vector], int64_t i) const {
    load_floats(h, x + i);
    if constexpr (C.has_residual) {
      float r[C.vector];
      load_floats(r, residual + i);
      for (int e = 0; e < C.vector; ++e) h[e] += r[e];
    }
  }

  TC_DEVICE void store_neighbours(int64_t i, const float (&h)[C.vector], float scale) const {
    float weight[C.vector];
    if constexpr (C.has_weight)
      load_constant_floats(weight, static_cast<const W*>(p.weight) + i);
    else
      for (float& w : weight) w = 1;
    float y[C.vector];
    for (int e = 0; e < C.vector; ++e) y[e] = h[e] * scale * weight[e];
    store_results(i, h, y);
  }
  TC_DEVICE void store_results(int64_t i, const float (&h)[C.vector],
                               const float (&y)[C.vector]) const {
    if constexpr (C.has_residual)
      if (residual_out) store_floats(residual_out + i, h);
    store_floats(out + i, y);
  }
};

}  // namespace tensorcraft::kernel::rms_norm
