// SPDX-License-Identifier: Apache-2.0
#pragma once
// An expression whose steps are read as data: one kernel serves every expression where nothing can
// be compiled for it.
#include "tensorcraft/device/expression/interpreted.cuh"
#include "tensorcraft/device/semiring.cuh"

namespace tensorcraft {

template <class Params>
struct InterpretedSemiring {
  const Params& p;

  TC_DEVICE InterpretedSemiring(const Params& params) : p(params) {}
  TC_DEVICE float identity() const { return identity_of(p.reduction); }
  TC_DEVICE float reduce(float a, float b) const { return reduced(p.reduction, a, b); }
  TC_DEVICE bool adds() const { return p.reduction == Reduction::sum; }
  TC_DEVICE float combine(float x, float a) const {
    using namespace expression;
    uint64_t slots[kFirstStep + Params::kMaxSteps];
    slots[0] = slot_of(x);
    slots[1] = slot_of(a);
    for (int i = 0; i < p.num_numbers; ++i) slots[kFirstNumber + i] = p.numbers[i];
    take_steps(static_cast<const Step*>(static_cast<const void*>(p.steps)), p.num_steps, slots);
    return float_of(slots[kFirstStep + p.num_steps - 1]);
  }
};

}  // namespace tensorcraft
