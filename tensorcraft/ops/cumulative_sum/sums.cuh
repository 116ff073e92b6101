// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/concepts.h"
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
template <class T, Config C>
TC_DEVICE typename Sums<T>::Out* row_of_out(const Params& p, int64_t row) {
  return static_cast<typename Sums<T>::Out*>(p.out) + p.out_rows.offset<C.nested>(row);
}

}  // namespace tensorcraft::kernel::cumulative_sum
