// SPDX-License-Identifier: Apache-2.0
#pragma once
// One block: what the blocks of report.cuh know becomes the report.
#include "tensorcraft/ops/csr/facts.cuh"

namespace tensorcraft::kernel::csr {

struct Summary {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = static_shared<FactsOfWarps>();
    constexpr int kWarps = C.threads / kWarpSize;
    const int64_t all = div_ceil(p.a.rows, int64_t(kWarps));
    const int blocks = all < kFactBlocks ? int(all) : kFactBlocks;
    Facts facts{};
    for (int i = int(threadIdx.x); i < blocks; i += C.threads)
      facts = together(facts, static_cast<const Facts*>(p.workspace)[i]);
    facts = of_block<C.threads>(shared, facts);
    if (threadIdx.x != 0) return;
    element_of<int64_t>(p.data, 0) = facts.longest_row;
    element_of<int64_t>(p.data, 1) = facts.empty_rows;
    element_of<int64_t>(p.data, 2) = p.a.rows - facts.bad_offsets;
    element_of<int64_t>(p.data, 3) = p.a.rows - facts.bad_indices;
    element_of<int64_t>(p.data, 4) = p.a.rows - facts.repeated;
  }
};

}  // namespace tensorcraft::kernel::csr
