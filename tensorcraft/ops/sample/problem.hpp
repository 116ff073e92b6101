// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/checks/value_or_tensor.hpp"

namespace tensorcraft::kernel::sample {

// A checked call. Tensors of settings have the shape of out.
struct Problem {
  TensorView out, logits;
  NumberOrTensor temperature, top_k, top_p, min_p, seed, offset;
  bool row_counts;  // rows share a seed
  int64_t cols() const { return logits.shape(logits.rank() - 1); }
  int64_t rows() const { return out.size(); }
  bool filters() const { return top_k.is_given() || top_p.is_given() || min_p.is_given(); }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::sample
