// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/layer_norm/params.h"

// What every rung does with a row but adding it up.
namespace tensorcraft::kernel::layer_norm {

// The mean in two parts, pivot + shift, so one far above the deviation costs no digits. The pivot
// is a value of the row, or 0 where Row has none.
struct Statistics {
  float pivot, shift, rstd;
  TC_DEVICE float centered(float h) const { return (h - pivot) - shift; }
};

// One row of x, residual, out and residual_out; h is x + residual.
template <class T, class W, Config C>
struct Row {
  static constexpr bool kHasPivot = sizeof(T) == 4;  // see about()
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

  // The first value; 0 where it is not finite, so that only sums decide what becomes of it.
  TC_DEVICE float pivot() const { return finite_or_zero(load(0)); }

  // Values of 2 bytes have so few digits that one float holds the mean as well as two.
  TC_DEVICE static Statistics about(float pivot, float shift) {
    return sizeof(T) == 2 ? Statistics{pivot + shift, 0, 0} : Statistics{pivot, shift, 0};
  }

  TC_DEVICE float finish(float h, float weight, float bias, const Statistics& s) const {
    return activate<C.activation>(s.centered(h) * s.rstd * weight + bias);
  }

  TC_DEVICE void store(int64_t i, float h, const Statistics& s) const {
    float weight = 1, bias = 0;
    if constexpr (C.has_weight) weight = float(static_cast<const W*>(p.weight)[i]);
    if constexpr (C.has_bias) bias = float(static_cast<const W*>(p.bias)[i]);
    if constexpr (C.has_residual)
      if (residual_out) residual_out[i * p.residual_out_step] = T(h);
    out[i * p.out_step] = T(finish(h, weight, bias, s));
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

  TC_DEVICE void store_neighbours(int64_t i, const float (&h)[C.vector],
                                  const Statistics& s) const {
    float weight[C.vector], bias[C.vector];
    if constexpr (C.has_weight)
      load_constant_floats(weight, static_cast<const W*>(p.weight) + i);
    else
      for (float& w : weight) w = 1;
    if constexpr (C.has_bias)
      load_constant_floats(bias, static_cast<const W*>(p.bias) + i);
    else
      for (float& b : bias) b = 0;
    float y[C.vector];
    for (int e = 0; e < C.vector; ++e) y[e] = finish(h[e], weight[e], bias[e], s);
    store_results(i, h, y);
  }
  TC_DEVICE void store_results(int64_t i, const float (&h)[C.vector],
                               const float (&y)[C.vector]) const {
    if constexpr (C.has_residual)
      if (residual_out) store_floats(residual_out + i, h);
    store_floats(out + i, y);
  }
};

// What a thread finds of a row, for the join with the other threads': where none has more of it
// than another, without their counts.
template <Config C>
using RowPart = Select<C.whole != 0, EvenMoments, Moments>;

// The mean is relative to the pivot.
template <Config C>
TC_DEVICE RowPart<C> row_part(const SumsAboutFirst& own, float pivot) {
  if constexpr (C.whole) {
    constexpr float kInverse = 1.0f / (C.slots * C.vector);
    const float from_first = own.sum * kInverse;
    return {own.first - pivot + from_first, own.squares_about_mean(from_first) * kInverse};
  } else {
    const float from_first = own.count > 0 ? own.sum * ptx::rcp_approx_ftz(own.count) : 0;
    return {own.count, own.first - pivot + from_first, own.squares_about_mean(from_first)};
  }
}
template <class T, Config C, bool has_residual>
TC_DEVICE RowPart<C> row_part(const RowSlots<T, C, has_residual>& slots, float pivot) {
  float h[C.vector];
  slots.floats(0, h);
  SumsAboutFirst own{h[0], 0, 0, 0};
  slots.each([&](int, const float(&v)[C.vector]) { own.add(v); });
  return row_part<C>(own, pivot);
}

// By one thread of the row.
TC_DEVICE void store_statistics(const Params& p, int64_t row, const Statistics& s) {
  if (p.mean) p.mean[row] = s.pivot + s.shift;
  if (p.rstd) p.rstd[row] = s.rstd;
}

}  // namespace tensorcraft::kernel::layer_norm
