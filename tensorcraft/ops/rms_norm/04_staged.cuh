// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the copy engine brings the row to shared memory with one instruction (sm_90), and
// both passes read it there. A thread holds nothing of the row in registers, so more blocks share a
// multiprocessor, and a row may be as long as the shared memory of a cluster's blocks. Demands:
// rows of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/staged_row.cuh"
#include "tensorcraft/ops/rms_norm/row.cuh"

namespace tensorcraft::kernel::rms_norm {

template <class T, class W, Config C>
TC_DEVICE void staged(const Params& p) {
  auto& shared = static_shared<StagedShared<float>>();
  auto& memory = dynamic_shared<AlignedVector<T, C.vector>>();
  const Row<T, W, C> row(p, blockIdx.x / C.cluster);
  const StagedRow<T, C, C.has_residual != 0> h(shared, &memory[0], row.x, row.residual, int(p.cols),
                                               p.rows);
  float squares = h.sum(shared.scratch[0], [](float v) { return v * v; });
  if constexpr (C.cluster > 1) {
    const float* parts = h.gather(shared, squares);
    squares = 0;
    for (int i = 0; i < C.cluster; ++i) squares += parts[i];
  }
  const float scale = row.scale(squares);
  h.each([&](int column, const float(&v)[C.vector]) { row.store_neighbours(column, v, scale); });
}

}  // namespace tensorcraft::kernel::rms_norm
