// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many rows end before each tile of 02_merge_path.cuh.
#include "tensorcraft/ops/spmm/params.h"

namespace tensorcraft::kernel::spmm {

struct Partition {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t tile = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (tile <= tiles(p)) starts(p)[tile] = rows_before<I>(p.a, steps_before(p, tile));
  }
};

}  // namespace tensorcraft::kernel::spmm
