// SPDX-License-Identifier: Apache-2.0
#pragma once
// One block: a thread has an expert and goes through all ids, once to count its rows and once to
// give them out.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/moe_permute/params.h"

namespace tensorcraft::kernel::moe_permute {

struct Groups {
  int32_t size[kMaxExperts], first[kMaxExperts + 1];
};

struct NaiveSort {
  template <Config C>
  TC_DEVICE static void run(const SortParams& p) {
    auto& groups = static_shared<Groups>();
    const int thread = int(threadIdx.x);
    for (int e = thread; e < p.experts; e += C.threads) {
      groups.size[e] = 0;
      for (int i = 0; i < p.entries; ++i) groups.size[e] += expert_of(p, i) == e;
    }
    __syncthreads();
    if (thread == 0) {
      groups.first[0] = 0;
      for (int e = 0; e < p.experts; ++e)
        groups.first[e + 1] = groups.first[e] + round_up(groups.size[e], p.align);
    }
    __syncthreads();
    for (int e = thread; e <= p.experts; e += C.threads) store_offset(p, e, groups.first[e]);
    for (int e = thread; e < p.experts; e += C.threads) {
      int row = groups.first[e];
      for (int i = 0; i < p.entries; ++i) {
        if (expert_of(p, i) != e) continue;
        row_of(p, i) = row;
        source_of(p, row++) = i;
      }
      while (row < groups.first[e + 1]) source_of(p, row++) = -1;
    }
    for (int i = thread; i < p.entries; i += C.threads)
      if (expert_of(p, i) < 0) row_of(p, i) = -1;
    for (int row = groups.first[p.experts] + thread; row < p.rows; row += C.threads)
      source_of(p, row) = -1;
  }
};

}  // namespace tensorcraft::kernel::moe_permute
