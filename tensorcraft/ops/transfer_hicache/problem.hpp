// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/transfer_hicache/params.h"
#include "tensorcraft/simt/instance.hpp"

namespace tensorcraft::kernel::transfer_hicache {

// A checked call. The outputs are k_dst and v_dst, or memory that becomes copies of them first.
struct Problem {
  TensorView k_dst_out, v_dst_out, k_dst, v_dst;
  Params params;  // of the outputs
  int unroll;
  int64_t block_quota;
};

// Host variants. Fail with kind index before they write if a token is none of a cache.
void cpu(const Problem& q);
void reference(const Problem& q);

simt::OperatorInstances instances();

}  // namespace tensorcraft::kernel::transfer_hicache
