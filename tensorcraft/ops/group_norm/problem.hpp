// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <optional>

namespace tensorcraft::kernel::group_norm {

struct Problem {  // a checked call
  TensorView out, x;
  std::optional<TensorView> weight, bias;
  int64_t groups;
  float eps;

  int64_t group_channels() const { return x.shape(1) / groups; }
  int64_t spatial() const {
    int64_t size = 1;
    for (int i = 2; i < x.rank(); ++i) size *= x.shape(i);
    return size;
  }
  int64_t rows() const { return x.shape(0) * groups; }
  int64_t cols() const { return group_channels() * spatial(); }
};

// Host variants.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::group_norm
