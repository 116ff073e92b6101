// SPDX-License-Identifier: Apache-2.0
#pragma once
// A warp a row: its length, and whether its indices ascend inside the matrix. Each block leaves
// what it knows in the workspace, and a last block (summary.cuh) takes it together.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/facts.cuh"

namespace tensorcraft::kernel::csr {

struct Report {
  template <class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kWarps = C.threads / kWarpSize;
    auto& shared = static_shared<FactsOfWarps>();
    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    Facts facts{};
    for (int64_t row = int64_t(blockIdx.x) * kWarps + warp; row < p.a.rows;
         row += int64_t(gridDim.x) * kWarps) {
      const I* const offsets = static_cast<const I*>(p.a.indptr);
      const int64_t begin = offsets[row * p.a.indptr_stride];
      const int64_t end = offsets[(row + 1) * p.a.indptr_stride], from = p.a.rows - row;
      const bool is_part = begin <= end && begin >= 0 && end <= p.a.stored &&
                           (row > 0 || begin == 0) && (from > 1 || end == p.a.stored);
      if (!is_part) {
        facts.bad_offsets = larger(facts.bad_offsets, from);
        continue;
      }
      facts.longest_row = larger(facts.longest_row, end - begin);
      facts.empty_rows += lane == 0 && begin == end;
      for (int64_t k = begin + lane; k < end; k += kWarpSize) {
        const I* const at = static_cast<const I*>(p.a.indices) + k * p.a.indices_stride;
        const I before = k > begin ? at[-p.a.indices_stride] : I(-1);
        if (!is_column(p.a, *at) || *at < before)
          facts.bad_indices = larger(facts.bad_indices, from);
        else if (*at == before)
          facts.repeated = larger(facts.repeated, from);
      }
    }
    facts = of_block<C.threads>(shared, facts);
    if (threadIdx.x == 0) static_cast<Facts*>(p.workspace)[blockIdx.x] = facts;
  }
};

}  // namespace tensorcraft::kernel::csr
