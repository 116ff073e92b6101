// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of an expression; any strides. The thread reads step after step from the
// parameters and keeps values in an array that it indexes at run time, so in local memory: each
// step costs loads, stores and a chain of comparisons. One kernel serves every expression.
#include "tensorcraft/device/expression/interpreted.cuh"
#include "tensorcraft/ops/elementwise/program.cuh"

namespace tensorcraft::kernel::elementwise {

struct Interpreted {
  template <ExpressionConfig C>
  TC_DEVICE static void run(const InterpretedParams& all) {
    const ExpressionParams& p = all.p;
    const int64_t element = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (element >= p.size) return;

    uint64_t slots[kFirstStep + InterpretedParams::kMaxSteps];
    int64_t at[kMaxInputs + 1] = {};
    int64_t rest = element;
    for (int axis = p.axes - 1; axis >= 0; --axis) {
      for (int t = 0; t <= p.num_inputs; ++t) at[t] += rest % p.shape[axis] * p.strides[t][axis];
      rest /= p.shape[axis];
    }
    for (int i = 0; i < p.num_inputs; ++i)
      slots[i] = with_element(Element(all.dtypes[i + 1]), Loaded{p.inputs[i], at[i + 1]});
    for (int i = 0; i < all.num_numbers; ++i) slots[kFirstNumber + i] = p.numbers[i];

    take_steps(static_cast<const Step*>(static_cast<const void*>(all.steps)), all.num_steps, slots);
    with_element(Element(all.dtypes[0]),
                 Stored{p.out, at[0], slots[kFirstStep + all.num_steps - 1]});
  }
};

}  // namespace tensorcraft::kernel::elementwise
