// SPDX-License-Identifier: Apache-2.0
#pragma once
// An expression whose steps are read as data, one output after the other: one kernel serves every
// expression where nothing can be compiled for it.
#include "tensorcraft/device/expression/interpreted.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

template <Config C>
struct InterpretedExpression {
  const InterpretedParams& p;
  uint32_t batch;

  TC_DEVICE InterpretedExpression(const InterpretedParams& params, uint32_t entry)
      : p(params), batch(entry) {}

  template <int N>
  TC_DEVICE void apply(float (&x)[N], int64_t row, int64_t col, int count) const {
    for (int i = 0; i < count; ++i) x[i] = value(x[i], row, col + i);
  }

 private:
  TC_DEVICE float value(float x, int64_t row, int64_t col) const {
    using namespace expression;
    uint64_t slots[kFirstStep + InterpretedParams::kMaxSteps];
    slots[0] = slot_of(x);
    for (int i = 0; i < p.num_arrays; ++i) {
      const Matrix& m = p.arrays[i];
      const int64_t at = batch_offset(p, m, batch) + row * m.row_stride + col * m.col_stride;
      slots[i + 1] = with_element(Element(p.dtypes[i]), Loaded{m.data, at});
    }
    for (int i = 0; i < p.num_numbers; ++i) slots[kFirstNumber + i] = p.numbers[i];
    take_steps(static_cast<const Step*>(static_cast<const void*>(p.steps)), p.num_steps, slots);
    return float_of(slots[kFirstStep + p.num_steps - 1]);
  }
};

}  // namespace tensorcraft::kernel::gemm
