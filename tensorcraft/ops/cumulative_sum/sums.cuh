// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/store_as.cuh"
#include "tensorcraft/ops/cumulative_sum/params.h"

namespace tensorcraft::kernel::cumulative_sum {

// The types that sums and products are taken in and stored as. Integers wrap, so they are unsigned
// until they are stored.
template <class T, Operation operation = Operation::sum>
struct Sums {
  static constexpr bool kAsFloat = FloatingPoint<T> || operation == Operation::float_prod;
  // Products of floats begin at the first element: those of a part alone may exceed every float
  // where the row's do not.
  static constexpr bool kFromLeft = kAsFloat && operation != Operation::sum;
  using Value = Select<kAsFloat, float, uint64_t>;
  using Out = Select<FloatingPoint<T>, T, Select<kAsFloat, float, int64_t>>;
};

struct Times {
  template <class T>
  TC_DEVICE static T identity() {
    return T(1);
  }
  template <class T>
  TC_DEVICE T operator()(T a, T b) const {
    return a * b;
  }
};
template <Config C>
using Join = Select<C.operation == Operation::sum, Sum, Times>;

template <Config C, class T>
TC_DEVICE typename Sums<T, C.operation>::Value value_of(const Params& p, T x) {
  using Value = typename Sums<T, C.operation>::Value;
  if constexpr (C.operation != Operation::sum && sizeof(T) == 1)
    if (p.of_bools) return Value(x != 0 ? 1 : 0);
  if constexpr (Sums<T, C.operation>::kAsFloat)
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
  using Value = typename Sums<T, C.operation>::Value;
  using Out = typename Sums<T, C.operation>::Out;
  Out* own;
  int64_t first;

  TC_DEVICE OutRow(const Params& p, int64_t row)
      : own(static_cast<Out*>(p.out)), first(p.out_rows.offset<C.nested>(row)) {
    own += first;
  }
  TC_DEVICE void store(const Params& p, int64_t at, Value sum) const {
    if constexpr (C.converts)
      if (p.out_type != OutputType::own) return store_as(p.out_type, p.out, first + at, sum);
    own[at] = Out(sum);
  }
  TC_DEVICE void store_initial(const Params& p) const {
    store(p, -p.out_step, Join<C>::template identity<Value>());
  }
};

// The sum or product of elements in one chain, however many.
template <class T, Operation operation>
struct Chain {
  using Value = typename Sums<T, operation>::Value;
  static constexpr bool kAdds = operation == Operation::sum;
  Value total = kAdds ? 0 : 1;
  TC_DEVICE void add(Value x) { total = kAdds ? total + x : total * x; }
  TC_DEVICE Value value() const { return total; }
};
template <FloatingPoint T>
struct Chain<T, Operation::sum> {
  CompensatedSum sum;
  TC_DEVICE void add(float x) { sum.add(x); }
  TC_DEVICE float value() const { return sum.value(); }
};

}  // namespace tensorcraft::kernel::cumulative_sum
