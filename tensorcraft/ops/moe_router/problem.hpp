// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/moe_router/params.h"

#include <optional>

namespace tensorcraft::kernel::moe_router {

struct Problem {  // a checked call
  TensorView weights, logits;
  std::optional<TensorView> bias, ids;
  Scoring scoring;
  int64_t k, groups, group_k;
  bool renormalize;
  float scale;
  int64_t tokens() const { return logits.shape(0); }
  int64_t experts() const { return logits.shape(1); }
};

Params params(const Problem& q);

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::moe_router
