// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two operations of a product, as kernels use them.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/semiring.h"

namespace tensorcraft {

// The value that changes nothing: the result of a row without elements.
TC_DEVICE float identity_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::max:
      return -kInfinity;
    case Reduction::min:
      return kInfinity;
    case Reduction::prod:
      return 1.0f;
    default:
      return 0.0f;
  }
}
// NaN survives.
TC_DEVICE float reduced(Reduction reduction, float a, float b) {
  switch (reduction) {
    case Reduction::max:
      return fmax_nan(a, b);
    case Reduction::min:
      return fmin_nan(a, b);
    case Reduction::prod:
      return a * b;
    default:
      return a + b;
  }
}

// x * a and sums.
template <class Params>
struct ProductSemiring {
  TC_DEVICE ProductSemiring(const Params&) {}
  TC_DEVICE float identity() const { return 0.0f; }
  TC_DEVICE float combine(float x, float a) const { return x * a; }
  TC_DEVICE float reduce(float a, float b) const { return a + b; }
  TC_DEVICE bool adds() const { return true; }
};

// The text of a compiled expression, which includes the rung, defines the first
// (op/checks/semiring.cpp), interpreted_semiring.cuh the second.
template <class Params>
struct CompiledSemiring;
template <class Params>
struct InterpretedSemiring;

template <class Params, Semiring semiring>
using SemiringOf = Select<
    semiring == Semiring::product, ProductSemiring<Params>,
    Select<semiring == Semiring::compiled, CompiledSemiring<Params>, InterpretedSemiring<Params>>>;

// The result of a thread over a row of any length: a sum loses nothing on the way.
template <class S>
struct LongTotal {
  const S& semiring;
  float total;
  CompensatedSum sum;

  TC_DEVICE explicit LongTotal(const S& s) : semiring(s), total(s.identity()) {}
  TC_DEVICE void add(float v) {
    if (semiring.adds())
      sum.add(v);
    else
      total = semiring.reduce(total, v);
  }
  TC_DEVICE float value() const { return semiring.adds() ? sum.value() : total; }
};

// The reduction over each group of `width` neighbouring lanes. All 32 lanes call.
template <int width, class S>
TC_DEVICE float reduce_lanes(const S& semiring, float v) {
  for (int lanes = width / 2; lanes > 0; lanes /= 2)
    v = semiring.reduce(v, __shfl_xor_sync(kFullWarp, v, lanes));
  return v;
}

}  // namespace tensorcraft
