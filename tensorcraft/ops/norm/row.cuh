// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every rung does with a row of either form but adding it up.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/norm/params.h"

namespace tensorcraft::kernel::norm {

// What the results of a row are made with. The mean is in two parts, pivot + shift, so one far
// above the deviation costs no digits. The pivot is a value of the row, or 0 if Row has none. All
// are of the row times `scale`, a power of two: 1, unless squares of the row are no floats.
template <Form form>
struct Statistics {
  float pivot, shift, rstd, scale;
  TC_DEVICE float centered(float h) const { return (h * scale - pivot) - shift; }
};
template <>
struct Statistics<Form::rms> {
  float rstd;  // 1 over the root mean square
  float scale;
  TC_DEVICE float centered(float h) const { return h * scale; }
};

template <class P>
TC_DEVICE float rstd_of(const P& p, float squares) {
  return rsqrtf(squares * p.inverse_cols + p.eps);
}

// By one thread of the row.
template <class P>
TC_DEVICE void store_statistics(const P& p, int64_t row, const Statistics<Form::layer>& s) {
  if (p.mean) p.mean[row] = (s.pivot + s.shift) * inverse_of_power(s.scale);
  if (p.rstd) p.rstd[row] = s.rstd * s.scale;
}
template <class P>
TC_DEVICE void store_statistics(const P&, int64_t, const Statistics<Form::rms>&) {}

// One row of x, residual, out and residual_out; h is x + residual.
template <class T, class W, Config C>
struct Row {
  using Stats = Statistics<C.form>;
  static constexpr bool kHasPivot = C.form == Form::layer && sizeof(T) == 4;  // see about()
  const RowParams<Params, C>& p;
  const T *x, *residual;
  T *out, *residual_out;

  TC_DEVICE Row(const RowParams<Params, C>& params, int64_t row)
      : p(params),
        x(static_cast<const T*>(params.x) + row_offset(params, Params::kX, row)),
        residual(nullptr),
        out(static_cast<T*>(params.out) + row_offset(params, Params::kOut, row)),
        residual_out(nullptr) {
    if constexpr (C.has_residual) {
      residual = static_cast<const T*>(p.residual) + row_offset(p, Params::kResidual, row);
      if (p.residual_out)
        residual_out = static_cast<T*>(p.residual_out) + row_offset(p, Params::kResidualOut, row);
    }
  }

  TC_DEVICE float load(int64_t i) const {
    float h = float(x[i * p.x_step]);
    if constexpr (C.has_residual) h += float(residual[i * p.residual_step]);
    return h;
  }

  TC_DEVICE float square(int64_t i) const {
    const float h = load(i);
    return h * h;
  }

  // The first value; 0 if it is not finite, so that only sums decide what becomes of it.
  TC_DEVICE float pivot() const { return finite_or_zero(load(0)); }

  // Values of 2 bytes have so few digits that one float holds the mean as well as two.
  TC_DEVICE static Stats about(float pivot, float shift) {
    if constexpr (C.form == Form::rms)
      return {0, 1};
    else
      return sizeof(T) == 2 ? Stats{pivot + shift, 0, 0, 1} : Stats{pivot, shift, 0, 1};
  }

  TC_DEVICE float finish(float h, float weight, float bias, const Stats& s) const {
    if constexpr (C.form == Form::layer)
      return activate<C.activation>(s.centered(h) * s.rstd * weight + bias);
    return s.centered(h) * s.rstd * weight;
  }

  TC_DEVICE void store(int64_t i, float h, const Stats& s) const {
    float weight = 1, bias = 0;
    if constexpr (C.has_weight) weight = float(static_cast<const W*>(p.weight)[i]);
    if constexpr (C.has_bias) bias = float(static_cast<const W*>(p.bias)[i]);
    if constexpr (C.has_residual)
      if (residual_out) residual_out[i * p.residual_out_step] = T(h);
    out[i * p.out_step] = T(finish(h, weight, bias, s));
  }

  // The same for C.vector neighbours from column i on, if every step is 1.
  TC_DEVICE void load_neighbours(float (&h)[C.vector], int64_t i) const {
    load_floats(h, x + i);
    if constexpr (C.has_residual) {
      float r[C.vector];
      load_floats(r, residual + i);
      for (int e = 0; e < C.vector; ++e) h[e] += r[e];
    }
  }

  TC_DEVICE void store_neighbours(int64_t i, const float (&h)[C.vector], const Stats& s) const {
    float weight[C.vector], bias[C.vector], y[C.vector];
    if constexpr (C.has_weight)
      load_constant_floats(weight, static_cast<const W*>(p.weight) + i);
    else
      for (float& w : weight) w = 1;
    if constexpr (C.has_bias)
      load_constant_floats(bias, static_cast<const W*>(p.bias) + i);
    else if constexpr (C.form == Form::layer)
      for (float& b : bias) b = 0;
    for (int e = 0; e < C.vector; ++e)
      if constexpr (C.form == Form::layer)
        y[e] = finish(h[e], weight[e], bias[e], s);
      else
        y[e] = h[e] * s.rstd * weight[e];
    store_results(i, h, y);
  }
  TC_DEVICE void store_results(int64_t i, const float (&h)[C.vector],
                               const float (&y)[C.vector]) const {
    if constexpr (C.has_residual)
      if (residual_out) store_floats(residual_out + i, h);
    store_floats(out + i, y);
  }
};

template <class T, Form form>
TC_DEVICE bool is_extreme(const Statistics<form>& s) {
  return tensorcraft::is_extreme<T>(s.rstd);
}

template <Config C, class R>
TC_DEVICE Statistics<C.form> scaled_statistics(const R& row) {
  const ScaledSums s = scaled_sums < C.group,
                   C.form == Form::layer > (row.p.cols, [&](int64_t i) { return row.load(i); });
  const float rstd = rsqrtf(s.squares * row.p.inverse_cols + scaled_eps(row.p.eps, s.scale));
  if constexpr (C.form == Form::layer)
    return {s.pivot, s.shift, rstd, s.scale};
  else
    return {rstd, s.scale};
}

// Replaces the statistics of an extreme row. All threads of the block call.
template <class T, Config C, class R>
TC_DEVICE void correct_extreme(const R& row, Statistics<C.form>& s) {
  if constexpr (kHasExtremes<T>) {
    const bool corrects = is_extreme<T>(s);
    if (corrects) s = scaled_statistics<C>(row);
    // Before the first stores a result, which may be where the row is.
    if constexpr (C.cluster > 1) {
      if (corrects) ptx::cluster_sync();
    } else if constexpr (C.group > kWarpSize) {
      if (corrects) __syncthreads();
    } else if constexpr (C.group > 1) {
      __syncwarp();
    }
  }
}

// All of an extreme row. Nothing that threads keep of it is read, so no register holds it
// meanwhile.
template <class T, class W, Config C>
TC_COLD void store_extreme_row(const RowParams<Params, C>& p, int64_t index) {
  const Row<T, W, C> row(p, index);  // the kernel's own would have to lie in memory
  const auto s = scaled_statistics<C>(row);
  const auto [first, step] = share_of_extreme<C.group, C.cluster>(row.p.cols);
#pragma unroll 1
  for (int64_t i = first; i < row.p.cols; i += step) row.store(i, row.load(i), s);
  if (first == 0) store_statistics(row.p, index, s);
}

// The statistics of a row by walks over it; C.group threads have it, the calling one each value
// that is a multiple of C.group from `first`. That may be all of a long row.
template <class T, Config C, class R>
TC_DEVICE Statistics<C.form> statistics_of(const R& row, int64_t first,
                                           BlockReduce<float>& scratch) {
  const auto& p = row.p;
  CompensatedSum squares;
  if constexpr (C.form == Form::rms) {
    for (int64_t i = first; i < p.cols; i += C.group) squares.add(row.square(i));
    Statistics<C.form> s{rstd_of(p, group_reduce<C.group>(scratch, squares.value(), Sum())), 1};
    correct_extreme<T, C>(row, s);
    return s;
  } else {
    Statistics<C.form> s{finite_or_zero(row.load(0)), 0, 0, 1};
    CompensatedSum sum;
    for (int64_t i = first; i < p.cols; i += C.group) sum.add(row.load(i) - s.pivot);
    s.shift = group_reduce<C.group>(scratch, sum.value(), Sum()) * p.inverse_cols;
    for (int64_t i = first; i < p.cols; i += C.group) {
      const float d = s.centered(row.load(i));
      squares.add(d * d);
    }
    s.rstd = rstd_of(p, group_reduce<C.group>(scratch, squares.value(), Sum()));
    correct_extreme<T, C>(row, s);
    return s;
  }
}

// What a thread finds of a row of layer, for the join with the other threads': without counts, if
// no thread has more of it than another.
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

// The statistics of a row that a group's threads hold in registers; all threads of the block call.
template <Config C>
using HeldPart = Select<C.form == Form::layer, RowPart<C>, float>;
template <class T, class W, Config C, class Slots>
TC_DEVICE Statistics<C.form> statistics_of_held(const Row<T, W, C>& row, const Slots& slots,
                                                BlockReduce<HeldPart<C>>& scratch) {
  if constexpr (C.form == Form::rms) {
    return {rstd_of(row.p, slots.sum(scratch, [](float h) { return h * h; })), 1};
  } else {
    const float pivot = row.kHasPivot ? row.pivot() : 0;
    float first[C.vector];
    slots.floats(0, first);
    SumsAboutFirst own{first[0], 0, 0, 0};
    slots.each([&](int, const float(&h)[C.vector]) { own.add(h); });
    const RowPart<C> all = row_part<C>(own, pivot).template over_group<C.group>(scratch);
    Statistics<C.form> s = row.about(pivot, all.mean);
    s.rstd = rsqrtf(all.variance(row.p.inverse_cols) + row.p.eps);
    return s;
  }
}

}  // namespace tensorcraft::kernel::norm
