// SPDX-License-Identifier: Apache-2.0
#pragma once
// Neighbouring columns of x and of the result.
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/semiring.cuh"
#include "tensorcraft/ops/spmm/params.h"

namespace tensorcraft::kernel::spmm {

template <class T>
TC_DEVICE void store(const Params& p, int64_t row, int64_t column, float total) {
  float y = p.alpha * total;
  if (p.c)
    y += p.beta * float(static_cast<const T*>(p.c)[row * p.c_strides[0] + column * p.c_strides[1]]);
  static_cast<T*>(p.out)[row * p.out_strides[0] + column * p.out_strides[1]] = T(y);
}

// Rows of x that are asked for before the first is used.
inline constexpr int kAhead = 4;

// The sums of N neighbouring columns, the first of which is `column`.
template <class T, int N, class S>
struct Totals {
  const S& semiring;
  int64_t column;
  float values[N];

  TC_DEVICE Totals(const S& s, int64_t first) : semiring(s), column(first) { clear(); }
  TC_DEVICE void clear() {
    for (int i = 0; i < N; ++i) values[i] = semiring.identity();
  }
  // One element a of the matrix, beside it row x.
  TC_DEVICE void add(const Packed<T, N>& x, float a) {
    float elements[N];
    to_floats(elements, x);
    for (int i = 0; i < N; ++i)
      values[i] = semiring.reduce(values[i], semiring.combine(elements[i], a));
  }
  TC_DEVICE void store_row(const Params& p, int64_t row) const {
    for (int i = 0; i < N; ++i)
      if (column + i < p.columns) store<T>(p, row, column + i, values[i]);
  }
};

}  // namespace tensorcraft::kernel::spmm
