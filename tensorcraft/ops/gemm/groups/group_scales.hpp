// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/gemm_check.hpp"

#include <string_view>

namespace tensorcraft::kernel::gemm {

// A checked call of groups of rows that lacks its scales.
struct GroupedOperands {
  std::string_view op;
  DType dtype;                       // of a and b
  int64_t groups, rows, k, columns;  // columns: of b
  bool are_apart;                    // a has a matrix for each group
  bool transpose_b;
};
// Its scales as Problem has them: each with an axis of groups in front.
Scales group_scales(const GroupedOperands& call, const std::optional<TensorView>& a,
                    const std::optional<TensorView>& b);

}  // namespace tensorcraft::kernel::gemm
