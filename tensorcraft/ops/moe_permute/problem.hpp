// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/moe_permute/params.h"

#include <optional>

namespace tensorcraft::kernel::moe_permute {

// A checked call.
struct SortProblem {
  TensorView ids;
  std::optional<TensorView> offsets, row_map, sources;
  int64_t experts, align, rows;
  int64_t entries() const { return ids.size(); }
};
struct Problem {
  SortProblem sort;
  TensorView out, x;
};

SortParams sort_params(const SortProblem& q);

// Host variants.
void sort_cpu(const SortProblem& q);
void sort_reference(const SortProblem& q);
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::moe_permute
