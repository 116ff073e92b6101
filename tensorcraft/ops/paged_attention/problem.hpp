// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/ops/paged_attention/params.h"

#include <optional>

namespace tensorcraft::kernel::paged_attention {

// A checked call: q and out have `dtype`, both caches `code`.
struct Problem {
  Params params;
  DType dtype, code;
  bool is_latent;  // there is no v_cache
};

// Host variants. Fail with kind index before they write if a block that a query sees is no block of
// the cache.
void cpu(const Problem& q);
void reference(const Problem& q);

}  // namespace tensorcraft::kernel::paged_attention
