// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/device/expression/operation.h"

namespace tensorcraft::expression {

// These apply an operation to elements on the host; `b` is not read if there is one input.
// n floats next to each other, as vector code; y may be a or b.
void compute(Operation operation, float* y, const float* a, const float* b, float alpha, int64_t n);
// Integers, which wrap: n next to each other, and one.
void compute(Operation operation, int64_t* y, const int64_t* a, const int64_t* b, int64_t n);
int64_t compute(Operation operation, int64_t a, int64_t b);
// Whether a comparison holds.
template <class T>
bool holds(Operation operation, T a, T b) {
  if (operation == Operation::equal) return a == b;
  if (operation == Operation::not_equal) return a != b;
  return operation == Operation::less ? a < b : a <= b;
}
// The number of a float dtype beside a on the way to b; both are numbers of it.
float next_value(DType dtype, float a, float b);
// The formula itself.
double compute(Operation operation, double a, double b, double alpha);

}  // namespace tensorcraft::expression
