// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// A product of a matrix and a vector takes two operations: combine(x, a) of an element of each, and
// one that reduces what a row has of them.
enum class Reduction : int { sum, max, min, prod };

// How a kernel knows the two: x * a and sums; an expression that is compiled into it; or one that
// it reads as data, so that one kernel serves all.
enum class Semiring : int { product, compiled, interpreted };

// Params with what an expression reads. Neither struct has bytes between or behind its fields.
template <class Params>
struct WithNumbers : Params {
  static constexpr int kMaxNumbers = 10;
  uint64_t numbers[kMaxNumbers];  // the bits of a float, or an int64_t
};
template <class Params>
struct WithSteps : WithNumbers<Params> {
  static constexpr int kMaxSteps = 64, kStepBytes = 6;
  uint8_t steps[kMaxSteps * kStepBytes];
  Reduction reduction;
  uint16_t num_numbers, num_steps;
};

template <class Params, Semiring semiring>
using SemiringParams =
    Select<semiring == Semiring::product, Params,
           Select<semiring == Semiring::compiled, WithNumbers<Params>, WithSteps<Params>>>;

}  // namespace tensorcraft
