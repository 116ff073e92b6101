// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the chunks of all rows are shared out over the GPU, a warp each, and a second
// kernel filters and picks from the parts of a row. Still one read of a row without filters, but
// rows * chunks warps read it instead of rows * (threads / 32), so one row keeps as many
// multiprocessors busy as it has chunks.
#include "tensorcraft/ops/sample/row.cuh"

namespace tensorcraft::kernel::sample {

struct Split {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    const auto chunks = uint32_t(div_ceil(p.cols, int64_t(kChunk)));
    const uint32_t unit = blockIdx.x * (C.threads / kWarpSize) + threadIdx.x / kWarpSize;
    if (unit >= uint32_t(p.rows) * chunks) return;  // the whole warp
    const Row<T, RowParams<Params, C>> r(p, unit / chunks);
    const Part part = Chunk<T, C>(r, unit % chunks).part(r);
    if (threadIdx.x % kWarpSize == 0) static_cast<Part*>(p.workspace)[unit] = part;
  }
};

}  // namespace tensorcraft::kernel::sample
