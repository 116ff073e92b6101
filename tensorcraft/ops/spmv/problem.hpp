// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/checks/csr.hpp"
#include "tensorcraft/op/checks/semiring.hpp"

#include <optional>

namespace tensorcraft::kernel::spmv {

// A checked call; no c if it is not read.
struct Problem {
  TensorView out;
  op::CsrView a;
  TensorView x;
  std::optional<TensorView> c, starts;
  float alpha, beta;
  op::SemiringProgram semiring;
  int64_t longest_row;
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::spmv
