// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/store_as.cuh"
#include "tensorcraft/ops/cumulative_sum/params.h"

namespace tensorcraft::kernel::cumulative_sum {

// What sums are taken in and stored as. Integers wrap, so they are unsigned until they are stored.
template <class T>
struct Sums {
  using Value = uint64_t;
  using Out = int64_t;
};
template <FloatingPoint T>
struct Sums<T> {
  using Value = float;
  using Out = T;
};

template <class T>
TC_DEVICE typename Sums<T>::Value value_of(T x) {
  if constexpr (FloatingPoint<T>)
    return float(x);
  else
    return uint64_t(int64_t(x));
}

template <class T, Config C>
TC_DEVICE const T* row_of_x(const Params& p, int64_t row) {
  return static_cast<const T*>(p.x) + p.x_rows.offset<C.nested>(row);
}

// A row of out.
template <class T, Config C>
struct OutRow {
  using Out = typename Sums<T>::Out;
  Out* own;
  int64_t first;

  TC_DEVICE OutRow(const Params& p, int64_t row)
      : own(static_cast<Out*>(p.out)), first(p.out_rows.offset<C.nested>(row)) {
    own += first;
  }
  TC_DEVICE void store(const Params& p, int64_t at, typename Sums<T>::Value sum) const {
    if constexpr (C.converts)
      if (p.out_type != OutputType::own) return store_as(p.out_type, p.out, first + at, sum);
    own[at] = Out(sum);
  }
};

// The sum of elements in one chain, however many.
template <class T>
struct Chain {
  typename Sums<T>::Value sum = 0;
  TC_DEVICE void add(T x) { sum += value_of(x); }
  TC_DEVICE typename Sums<T>::Value value() const { return sum; }
};
template <FloatingPoint T>
struct Chain<T> {
  CompensatedSum sum;
  TC_DEVICE void add(T x) { sum.add(float(x)); }
  TC_DEVICE float value() const { return sum.value(); }
};

}  // namespace tensorcraft::kernel::cumulative_sum
