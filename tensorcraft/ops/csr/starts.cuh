// SPDX-License-Identifier: Apache-2.0
#pragma once
// A thread a tile of the merge path (csr.h), which looks for how many rows end before it.
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct Starts {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t tile = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t steps = tile * kMergeTile, all = p.a.rows + p.a.stored;
    if (tile <= merge_tiles(p.a.rows, p.a.stored))
      element_of<int64_t>(p.data, tile) = rows_before<I>(p.a, steps < all ? steps : all);
  }
};

}  // namespace tensorcraft::kernel::csr
