// SPDX-License-Identifier: Apache-2.0
#pragma once
// An expression as data.
#include "tensorcraft/device/expression/operation.h"

namespace tensorcraft::expression {

// Slots hold the values of one element: those of the inputs, then of the numbers, then of the steps
// in their order. A step reads slots before its own.
inline constexpr int kMaxInputs = 8, kMaxNumbers = 10;
inline constexpr int kFirstNumber = kMaxInputs, kFirstStep = kFirstNumber + kMaxNumbers;

// One operation on slots, rounded to its dtype: what the operator of that name would give.
struct Step {
  uint8_t operation;  // an Operation
  uint8_t dtype;      // of the result, as DType counts
  uint8_t a, b, c;    // slots
  uint8_t integer;    // the operands are integers or bool, else floats of any width
};

}  // namespace tensorcraft::expression
