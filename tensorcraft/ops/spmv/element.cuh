// SPDX-License-Identifier: Apache-2.0
#pragma once
// One stored element of the matrix with that of x, and one of the result.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/semiring.cuh"
#include "tensorcraft/ops/spmv/params.h"

namespace tensorcraft::kernel::spmv {

// Adds stored element k to the total, any strides.
template <class T, class I, class S>
TC_DEVICE void add_element(const Params& p, int64_t k, LongTotal<S>& total) {
  const I column = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
  if (!is_column(p.a, column)) return;
  const T a = static_cast<const T*>(p.a.data)[k * p.a.data_stride];
  const T x = static_cast<const T*>(p.x)[column * p.x_stride];
  total.add(total.semiring.combine(float(x), float(a)));
}

// Stored elements of one thread, `step` apart, with those of x beside them. All are asked for
// before the first is used: first what lies in order, then what that names. Arrays are contiguous.
template <class T, class I, int kCount>
struct Elements {
  T a[kCount], x[kCount];
  bool exists[kCount];

  TC_DEVICE void load(const Params& p, int64_t first, int step, int64_t end) {
    I column[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int64_t k = first + i * step;
      exists[i] = k < end;
      column[i] = exists[i] ? static_cast<const I*>(p.a.indices)[k] : I(-1);
      a[i] = exists[i] ? static_cast<const T*>(p.a.data)[k] : T(0.0f);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      exists[i] = is_column(p.a, column[i]);
      x[i] = exists[i] ? static_cast<const T*>(p.x)[column[i] * p.x_stride] : T(0.0f);
    }
  }
  // What element i is to a sum.
  template <class S>
  TC_DEVICE float value(const S& semiring, int i) const {
    return exists[i] ? semiring.combine(float(x[i]), float(a[i])) : semiring.identity();
  }
};

template <class T>
TC_DEVICE void store(const Params& p, int64_t row, float total) {
  float y = p.alpha * total;
  if (p.c) y += p.beta * float(static_cast<const T*>(p.c)[row * p.c_stride]);
  static_cast<T*>(p.out)[row * p.out_stride] = T(y);
}

}  // namespace tensorcraft::kernel::spmv
