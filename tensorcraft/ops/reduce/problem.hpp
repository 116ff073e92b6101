// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/reduce/params.h"

#include <algorithm>

namespace tensorcraft::kernel::reduce {

// Every operator of this folder becomes this: the axes of x are first the `kept` ones, which are
// those of out, then the reduced ones, whose elements count in row-major order.
struct Problem {
  Operation operation;
  TensorView out, x;
  int kept;
  float correction = 0;  // of var and std
  // Every element stands for so many: reduced axes without a stride are not in x.
  int64_t repeats = 1;

  int64_t outputs() const { return out.size(); }
  // Elements of x in a reduction.
  int64_t length() const {
    int64_t n = 1;
    for (int i = kept; i < x.rank(); ++i) n *= x.shape(i);
    return n;
  }
  // Returns the divisor of their squared deviations.
  double divisor() const {
    const double n = double(length()) * double(repeats);
    return std::max(n - double(correction), 0.0) / double(repeats);
  }
};

// `reduced` has a bit for each axis, and out may keep those as sizes 1.
Problem make_problem(Operation operation, const TensorView& out, const TensorView& x,
                     unsigned reduced, float correction = 0);

// Returns the dtype of results, unless a call asks for another.
DType own_dtype(Operation operation, DType x);

// Returns the params of every rung, with a row for each output.
Nested<Params> params(const Problem& problem);

// Host variants.
void cpu(const Problem& problem);
void reference(const Problem& problem);

}  // namespace tensorcraft::kernel::reduce
