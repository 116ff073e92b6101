// SPDX-License-Identifier: Apache-2.0
#pragma once
// An expression as data: what its kernels are given, on the host and on a device.
#include "tensorcraft/ops/elementwise/params.h"

namespace tensorcraft::kernel::elementwise {

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

// Run time: the joint axes of all tensors, row-major; a broadcast axis has stride 0.
struct ExpressionParams {
  const void* inputs[kMaxInputs];
  void* out;
  int64_t size;
  int64_t shape[RowMap::kMaxAxes];
  int64_t strides[kMaxInputs + 1][RowMap::kMaxAxes];  // elements; of out first
  uint64_t numbers[kMaxNumbers];                      // the bits of a float, or an int64_t
  int32_t axes;                                       // at least 1
  int32_t num_inputs;
};

// The same with the steps: one kernel for every expression.
struct InterpretedParams {
  static constexpr int kMaxSteps = 32;
  ExpressionParams p;
  // Steps as bytes: what clears padding for the plan cache (GCC 12) clears arrays of structs too.
  uint8_t steps[kMaxSteps * sizeof(Step)];
  uint8_t dtypes[kMaxInputs + 1];  // of out first
  uint8_t num_numbers, num_steps;
};

// Compile time, beside the expression itself.
struct ExpressionConfig {
  int threads = 256;
  int vectors = 1;  // vector accesses a thread has in flight, for each input
  int shared = 0;   // a bit for each input: one element serves a vector
  int nested = 0;   // more than one axis
  int wide = 0;     // more than 2^31 - 1 elements: indices of 64 bits are divided
};

}  // namespace tensorcraft::kernel::elementwise
