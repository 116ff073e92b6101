// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gemm/parts/tile.cuh"

// How every rung finishes a sum: scale, add, activate, gate, round once, store.
namespace tensorcraft::kernel::gemm {

// N neighbours from `from` on, 0 for those past the first `count`; accesses of kVector elements if
// that is more than 1: the host has checked that they are aligned and all there or none.
template <int kVector, int N, class To, class T>
TC_DEVICE void load_neighbours(To (&to)[N], const T* from, int64_t stride, int count) {
  constexpr int V = kVector < N ? kVector : N;
  if constexpr (V > 1 && N % V == 0) {
#pragma unroll
    for (int i = 0; i < N; i += V) {
      AlignedVector<T, V> v = {};
      if (i < count) v = load_vector<V>(from + i);
#pragma unroll
      for (int j = 0; j < V; ++j) to[i + j] = To(v[j]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = i < count ? To(from[i * stride]) : To();
  }
}

// N times the one element there is, or 0 if none of the N is inside D: what the text of an
// expression calls (gemm_expression.cpp).
template <int N, class T>
TC_DEVICE void load_shared(T (&to)[N], const T* from, int count) {
  const T one = count > 0 ? *from : T();
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = one;
}

// The type that a product is summed up in. Sums of integers pass as the bits of floats: nothing
// between the sum and the epilogue computes with them.
template <class T>
using SumOf = Select<is_integral_v<T>, int32_t, float>;
TC_DEVICE float sum_bits(float sum) { return sum; }
TC_DEVICE float sum_bits(int32_t sum) { return bit_cast<float>(sum); }
template <class T>
TC_DEVICE void add_sum(float& sum, float other) {
  sum = sum_bits(bit_cast<SumOf<T>>(sum) + bit_cast<SumOf<T>>(other));
}

template <class T>
inline constexpr bool kMayScaleBlocks = is_floating_point_v<T> && sizeof(T) == 1;

// alpha times the scales that are one number. They are read here, as another launch of a graph may
// find other numbers; those by block are in the sums.
template <class T, Config C>
TC_DEVICE float product_factor(const ParamsOf<C>& p, uint32_t batch) {
  float factor = p.alpha;
  if constexpr (sizeof(T) == 1 || C.has_scales) {
    if (kMayScaleBlocks<T> && p.scale_columns) return factor;
    if (p.a_scale && p.a_scale_stride == 0) factor *= *a_scale_of<C>(p, batch);
    if (p.b_scale && p.b_scale_stride == 0) factor *= *b_scale_of<C>(p, batch);
  }
  return factor;
}

struct NoExpression {
  TC_DEVICE NoExpression(const Params&, uint32_t) {}
  template <int N>
  TC_DEVICE void apply(float (&)[N], int64_t, int64_t, int) const {}
};
// The text of a compiled expression, which includes the rung, defines the first
// (expression_text.cpp), interpreted_expression.cuh the second. apply() changes N neighbours of a
// row, of which the first `count` are inside D.
template <Config C>
struct CompiledExpression;
template <Config C>
struct InterpretedExpression;

// The facts in the type of a result: the elements of D, and what is done to them last. functor.cuh
// has another.
template <class Result, Config C>
struct ResultOf {
  using Element = Result;
  using Last = Select<C.expression == Expression::none, NoExpression,
                      Select<C.expression == Expression::compiled, CompiledExpression<C>,
                             InterpretedExpression<C>>>;
};

// The group of a tile, and where its rows end.
struct OneGroup {
  int64_t row_end;
  uint32_t number;
};
struct NoGroup {};
template <Config C>
using GroupOf = Select<C.has_groups != 0, OneGroup, NoGroup>;

// May operands have zero points?
template <class T, Config C>
inline constexpr bool kMayHaveZeros = is_integral_v<T> && C.has_scales != 0;
// The sums of lines of a batch entry; null: the other operand has no zero point.
struct SumsOfLines {
  const int32_t *rows, *columns;
};
struct NoSums {};
// N integers of columns from `col` on, or N times the one there is, of which `count` are inside D.
template <int N>
TC_DEVICE void load_integers(int32_t (&to)[N], const int32_t* from, int64_t stride, int64_t col,
                             int count) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = from && i < count ? from[(col + i) * stride] : 0;
}

// Is a result the sums alone, or codes of 8 bits, which a factor of their own is for?
template <class Out>
inline constexpr bool kIsSums = is_integral_v<Out> && sizeof(Out) == 4;
template <class Out>
inline constexpr bool kIsCode = sizeof(Out) == 1;
// The type of bias: that of D if T has 8 bits, but no code.
template <class T, class Out>
using BiasOf = Select<sizeof(T) == 1, Select<kIsCode<Out>, float, Out>, T>;

// The matrices of a block's batch entry, and bias. C is null if beta is 0: it may hold NaN then,
// and its strides are not computed with.
template <class T, class Result, Config C>
struct Epilogue {
  using Out = typename ResultOf<Result, C>::Element;

  const ParamsOf<C>& p;
  Out* d;
  const Out* c;
  using Bias = BiasOf<T, Out>;
  const Bias* bias;
  float factor;      // of the product
  float out_factor;  // of codes
  Select<kMayHaveZeros<T, C>, SumsOfLines, NoSums> lines;
  typename ResultOf<Result, C>::Last last;
  GroupOf<C> group;

  TC_DEVICE Epilogue(const ParamsOf<C>& params, const Tile<C>& tile)
      : Epilogue(params, tile.batch) {
    if constexpr (C.has_groups) group = {tile.row_end, tile.batch};
  }
  TC_DEVICE Epilogue(const ParamsOf<C>& params, uint32_t batch)
      : p(params),
        d(batch_entry<Out>(params, params.d, batch)),
        c(C.has_c && params.beta != 0 ? batch_entry<Out>(params, params.c, batch) : nullptr),
        bias(static_cast<const Bias*>(params.bias)),
        factor(kIsSums<Out> ? 1 : product_factor<T, C>(params, batch)),
        out_factor(kIsCode<Out> && params.out_scale ? *params.out_scale : 1),
        last(params, batch) {
    if constexpr (kMayHaveZeros<T, C>) {
      const ZeroPoints& zero = params.zero;
      const int64_t columns = C.gated ? 2 * params.n : params.n;
      lines.rows = zero.b ? zero.sums + batch * params.m : nullptr;
      lines.columns = zero.a ? zero.sums + zero.b_sums_at + batch * columns : nullptr;
    }
  }

  // The row behind the last one that is stored.
  TC_DEVICE int64_t row_end() const {
    if constexpr (C.has_groups)
      return group.row_end;
    else
      return p.m;
  }

  // Stores N neighbours of a row from column `col`; what is outside D is dropped. With vectors
  // of N the host has checked that D's columns come in aligned groups of N.
  template <int N>
  TC_DEVICE void store(const float (&sums)[N], int64_t row, int64_t col) const {
    if (row >= row_end() || col >= p.n) return;
    const int count = min_of(p.n - col, N);
    float x[N];
    finish(x, sums, row, col, count);
    store_finished(x, row, col, count);
  }

  // Serves a gated product: sums of the left and of the right half of B.
  template <int N>
  TC_DEVICE void store(const float (&gate)[N], const float (&up)[N], int64_t row,
                       int64_t col) const {
    if (row >= row_end() || col >= p.n) return;
    const int count = min_of(p.n - col, N);
    float x[N];
    finish_gated(x, gate, up, row, col, count);
    store_finished(x, row, col, count);
  }

  // N neighbours of C in a row, as they lie in memory.
  template <int N>
  struct InC {
    Out at[C.has_c ? N : 1];
  };
  // The first `count` of those are inside; the rest is 0. Only if C is added: `c` says so.
  template <int N>
  TC_DEVICE void read_c(InC<N>& to, int64_t row, int64_t col, int count) const {
    if constexpr (C.has_c)
      load_neighbours<C.c_vector>(to.at, c + row * p.c.row_stride + col * p.c.col_stride,
                                  p.c.col_stride, count);
  }

  // The numbers of each of N columns of B: a factor, an addend, a zero point and a sum.
  template <int N>
  struct OfColumns {
    float scale[C.has_scales ? N : 1], bias[C.has_bias == kByColumn ? N : 1];
    int32_t zero[kMayHaveZeros<T, C> ? N : 1], sum[kMayHaveZeros<T, C> ? N : 1];
  };
  template <int N>
  TC_DEVICE OfColumns<N> columns(int64_t col, int count) const {
    OfColumns<N> of = {};
    if constexpr (C.has_scales) {
      for (float& x : of.scale) x = 1;
      if (has_lines(p.b_scale, p.b_scale_stride))
        load_neighbours<C.c_vector>(of.scale, b_scale_of<C>(p, number()) + col * p.b_scale_stride,
                                    p.b_scale_stride, count);
    }
    if constexpr (kMayHaveZeros<T, C>) {
      load_integers(of.zero, p.zero.b, p.zero.b_stride, col, count);
      load_integers(of.sum, lines.columns, 1, col, count);
    }
    if constexpr (C.has_bias == kByColumn) {
      if (bias)
        load_neighbours<C.c_vector>(of.bias, bias + col * p.bias_stride, p.bias_stride, count);
    }
    return of;
  }

  // The results before they are rounded to Out: N neighbours of a row inside D, of which the first
  // `count` are inside, perhaps none. For rungs that store by themselves, or have read what is
  // added.
  template <int N>
  TC_DEVICE void finish(float (&x)[N], const float (&sums)[N], int64_t row, int64_t col,
                        int count) const {
    InC<N> old = {};
    if (c) read_c(old, row, col, count);
    finish(x, sums, old, columns<N>(col, count), row, col, count);
  }
  template <int N>
  TC_DEVICE void finish(float (&x)[N], const float (&sums)[N], const InC<N>& old,
                        const OfColumns<N>& of, int64_t row, int64_t col, int count) const {
    if constexpr (kIsSums<Out>) {  // nothing else is done to sums that are the result
      for (int i = 0; i < N; ++i) x[i] = sums[i];
      take_zeros(x, of, row, count);
    } else {
      scale_and_add(x, sums, of, row, count);
      if constexpr (C.has_c)
        for (int i = 0; i < N; ++i) x[i] += p.beta * float(old.at[i]);
      for (int i = 0; i < N; ++i) x[i] = activated(x[i]);
      last.apply(x, row, col, count);
      scale_codes(x);
    }
  }

  // Serves a gated product.
  template <int N>
  TC_DEVICE void finish_gated(float (&x)[N], const float (&gate)[N], const float (&up)[N],
                              int64_t row, int64_t col, int count) const {
    finish_gated(x, gate, up, columns<N>(col, count), columns<N>(col + p.n, count), row, col,
                 count);
  }
  template <int N>
  TC_DEVICE void finish_gated(float (&x)[N], const float (&gate)[N], const float (&up)[N],
                              const OfColumns<N>& of_gate, const OfColumns<N>& of_up, int64_t row,
                              int64_t col, int count) const {
    static_assert(!C.has_c);
    float y[N];
    scale_and_add(x, gate, of_gate, row, count);
    scale_and_add(y, up, of_up, row, count);
    for (int i = 0; i < N; ++i) x[i] = activated(x[i]) * y[i];
    last.apply(x, row, col, count);
    scale_codes(x);
  }

  // Rounds and stores it.
  template <int N>
  TC_DEVICE void store_finished(const float (&x)[N], int64_t row, int64_t col, int count) const {
    if constexpr (N > 1 && C.d_vector >= N) {
      Out* const to = d + row * p.d.row_stride + col;
      if constexpr (kIsCode<Out>)
        store_vector(to, to_codes<Out>(x));
      else
        from_floats<Out, N>(x).store(to);
    } else {
      for (int i = 0; i < N; ++i) {
        if (i < count) d[row * p.d.row_stride + (col + i) * p.d.col_stride] = rounded(x[i]);
      }
    }
  }

 private:
  TC_DEVICE static Out rounded(float x) {
    if constexpr (kIsSums<Out>)
      return bit_cast<Out>(x);
    else if constexpr (kIsCode<Out>)
      return to_code<Out>(x);
    else
      return Out(x);
  }

  // That of the group.
  TC_DEVICE uint32_t number() const {
    if constexpr (C.has_groups)
      return group.number;
    else
      return 0;
  }

  // Is there a scale for each line, which changes a finished sum?
  TC_DEVICE bool has_lines(const float* scale, int64_t stride) const {
    return scale && stride != 0 && !(kMayScaleBlocks<T> && p.scale_columns);
  }

  // From sums of a b to those of (a - zero) (b - zero): less zero_a sum_b and zero_b sum_a, and k
  // times both. int32 wraps, as the sums do.
  template <int N>
  TC_DEVICE void take_zeros(float (&sums)[N], const OfColumns<N>& of, int64_t row,
                            int count) const {
    if constexpr (kMayHaveZeros<T, C>) {
      if (count <= 0) return;
      const uint32_t zero = p.zero.a ? uint32_t(p.zero.a[row * p.zero.a_stride]) : 0;
      const uint32_t rest = (lines.rows ? uint32_t(lines.rows[row]) : 0) - uint32_t(p.k) * zero;
      for (int i = 0; i < N; ++i)
        sums[i] = bit_cast<float>(bit_cast<uint32_t>(sums[i]) - uint32_t(of.zero[i]) * rest -
                                  zero * uint32_t(of.sum[i]));
    }
  }

  template <int N>
  TC_DEVICE void scale_codes(float (&x)[N]) const {
    if constexpr (kIsCode<Out>)
      for (int i = 0; i < N; ++i) x[i] *= out_factor;
  }

  TC_DEVICE float activated(float x) const {
    if constexpr (C.expression == Expression::interpreted)
      return activate(p.activation, x);
    else
      return activate<C.activation, Out>(x);
  }

  // alpha a_scale b_scale sum + bias.
  template <int N>
  TC_DEVICE void scale_and_add(float (&x)[N], const float (&sums)[N], const OfColumns<N>& of,
                               int64_t row, int count) const {
    float alpha = factor, addend = 0, total[N];
    for (int i = 0; i < N; ++i) total[i] = sums[i];
    take_zeros(total, of, row, count);
    if constexpr (C.has_scales)
      if (has_lines(p.a_scale, p.a_scale_stride) && count > 0)
        alpha *= a_scale_of<C>(p, number())[row * p.a_scale_stride];
    if constexpr (C.has_bias == kByRow)
      if (count > 0) addend = float(bias[row * p.bias_stride]);
    for (int i = 0; i < N; ++i) {
      x[i] = alpha * float(bit_cast<SumOf<T>>(total[i]));
      if constexpr (C.has_scales) x[i] *= of.scale[i];
      if constexpr (C.has_bias == kByColumn) x[i] += of.bias[i];
      if constexpr (C.has_bias == kByRow) x[i] += addend;
    }
  }
};

}  // namespace tensorcraft::kernel::gemm
