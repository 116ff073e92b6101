// SPDX-License-Identifier: Apache-2.0
#pragma once
// An expression as data: what its kernels are given, on the host and on a device.
#include "tensorcraft/device/expression/step.h"
#include "tensorcraft/ops/elementwise/params.h"

namespace tensorcraft::kernel::elementwise {

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

// Params with the steps: one kernel for every expression.
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
