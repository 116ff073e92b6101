// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/cross_entropy/cross_entropy.hpp"

#include <optional>

namespace tensorcraft::kernel::cross_entropy {

struct Problem {  // a checked call
  TensorView out, logits, targets;
  std::optional<TensorView> lse;
  int64_t ignore_index;
  LossReduction reduction;

  int64_t rows() const { return targets.size(); }
  int64_t classes() const { return logits.shape(logits.rank() - 1); }
  bool is_reduced() const { return reduction != LossReduction::none; }
  // The loss of an ignored row: a reduction knows it by -0, which no other row has.
  float ignored() const { return is_reduced() ? -0.0f : 0.0f; }
};

// Host variants. Fail with kind index before they write if a target is no class.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::cross_entropy
