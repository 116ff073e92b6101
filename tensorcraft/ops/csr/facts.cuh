// SPDX-License-Identifier: Apache-2.0
#pragma once
// Joins what threads know of rows.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/params.h"

namespace tensorcraft::kernel::csr {

struct FactsOfWarps {
  Facts of[kMaxWarps];
};

TC_DEVICE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
TC_DEVICE Facts together(const Facts& a, const Facts& b) {
  return {larger(a.longest_row, b.longest_row), a.empty_rows + b.empty_rows,
          larger(a.bad_offsets, b.bad_offsets), larger(a.bad_indices, b.bad_indices),
          larger(a.repeated, b.repeated)};
}

// Thread 0 gets the facts of the block. All threads call, once.
template <int kThreads>
TC_DEVICE Facts of_block(FactsOfWarps& shared, Facts facts) {
  for (int lanes = kWarpSize / 2; lanes > 0; lanes /= 2)
    facts = together(facts, warp_exchange(facts, lanes));
  if (threadIdx.x % kWarpSize == 0) shared.of[threadIdx.x / kWarpSize] = facts;
  __syncthreads();
  for (int w = 1; w < kThreads / kWarpSize && threadIdx.x == 0; ++w)
    facts = together(facts, shared.of[w]);
  return facts;
}

}  // namespace tensorcraft::kernel::csr
