// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/ops/paged_attention/params.h"

namespace tensorcraft::kernel::paged_attention {

// Element d of a key or a value whose elements begin at `line`, `step` apart.
template <class Code>
TC_HOST_DEVICE float element(const Code* line, int64_t step, int d) {
  if constexpr (kIsRow<Code>)
    return LatentRow{line}[d];
  else
    return float(line[d * step]);
}

// Element d of a vector in two arrays, which has `dim` elements in the first one.
template <class T>
TC_HOST_DEVICE float element(const T* first, int64_t first_step, int dim, const T* second,
                             int64_t second_step, int d) {
  return d < dim ? element(first, first_step, d) : element(second, second_step, d - dim);
}

}  // namespace tensorcraft::kernel::paged_attention
