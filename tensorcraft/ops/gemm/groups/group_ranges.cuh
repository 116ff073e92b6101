// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where each group begins and ends, of the group of each row: a thread a row, of which the first
// and the last of a group write.
#include "tensorcraft/ops/gemm/params.h"

namespace tensorcraft::kernel::gemm {

struct GroupRanges {
  template <GroupRangesConfig C>
  TC_DEVICE static void run(const GroupRangesParams& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const int64_t group = id_of(p, row);
    if (group < 0 || group >= p.groups) return;
    int32_t* const range = static_cast<int32_t*>(p.workspace) + 2 * group;
    if (row == 0 || id_of(p, row - 1) != group) range[0] = int32_t(row);
    if (row + 1 == p.rows || id_of(p, row + 1) != group) range[1] = int32_t(row + 1);
  }

 private:
  TC_DEVICE static int64_t id_of(const GroupRangesParams& p, int64_t row) {
    return p.is_wide ? static_cast<const int64_t*>(p.ids)[row * p.step]
                     : static_cast<const int32_t*>(p.ids)[row * p.step];
  }
};

}  // namespace tensorcraft::kernel::gemm
