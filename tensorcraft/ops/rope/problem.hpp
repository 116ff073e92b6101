// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/rope/params.h"

#include <optional>

namespace tensorcraft::kernel::rope {

// A checked call; positions have the shape of the tokens.
struct Problem {
  TensorView out, x;
  std::optional<TensorView> k_out, k, cos, sin, positions;
  int64_t start_pos;
  Style style;
  double base;
  int64_t dim() const { return x.shape(x.rank() - 1); }
  int64_t seq() const { return x.shape(x.rank() - 3); }
  int64_t tokens() const;
};
struct CacheProblem {
  TensorView out, positions;
  double base;
  int64_t half() const { return out.shape(2); }
};

// Host variants. Fail with kind index before they write if a position is outside the caches.
void cpu(const Problem& q);
void reference(const Problem& q);
void cpu(const CacheProblem& q);
void reference(const CacheProblem& q);

}  // namespace tensorcraft::kernel::rope
