// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many rows end before each tile of 03_merge_path.cuh, for a call that does not bring it.
#include "tensorcraft/ops/spmv/params.h"

namespace tensorcraft::kernel::spmv {

struct Partition {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t tile = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (tile > tiles(p)) return;
    found_starts(p)[tile] = rows_before<I>(p.a, steps_before(p, tile));
  }
};

}  // namespace tensorcraft::kernel::spmv
