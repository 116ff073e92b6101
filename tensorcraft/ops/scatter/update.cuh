// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both rungs do with one update.
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/ops/scatter/params.h"

namespace tensorcraft::kernel::scatter {

// Floats are combined in float32 and rounded once; integers wrap.
template <class T>
struct SumOf {
  using Type = float;
};
template <class T>
  requires is_integral_v<T>
struct SumOf<T> {
  using Type = T;
};
template <class T>
using Sum = typename SumOf<T>::Type;

template <class S>
TC_DEVICE S combine(Operation operation, S a, S b) {
  if constexpr (is_integral_v<S>) {
    if (operation == Operation::add) return S(uint64_t(a) + uint64_t(b));
    if (operation == Operation::multiply) return S(uint64_t(a) * uint64_t(b));
    if (operation == Operation::max) return a > b ? a : b;
    return a < b ? a : b;
  } else {
    if (operation == Operation::add) return a + b;
    if (operation == Operation::multiply) return a * b;
    return operation == Operation::max ? fmax_nan(a, b) : fmin_nan(a, b);
  }
}

// The place that update j of a line names, -1 for none. The width of an index is asked at run time:
// all threads take the same branch, and the kernels are half as many.
TC_DEVICE int64_t place_of(const Params& p, int64_t line_index, int64_t j) {
  const int64_t at = line_index + j * p.index_step;
  const int64_t index = p.index_bytes == 8 ? static_cast<const int64_t*>(p.indices)[at]
                                           : int64_t(static_cast<const int32_t*>(p.indices)[at]);
  return position(index, p.size);
}

}  // namespace tensorcraft::kernel::scatter
