// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the copy engine brings the row to shared memory with one instruction (sm_90), and
// both walks read it there. A thread holds nothing of the row in registers, so more blocks share a
// multiprocessor, and one copies while another computes: the price is every exponential twice.
// Demands: rows of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/staged_row.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct Staged {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& shared = static_shared<StagedShared<ExpSum>>();
    auto& memory = dynamic_shared<AlignedVector<T, C.vector>>();
    const int64_t index = blockIdx.x / C.cluster;
    const Logits<T, C> x(p, index);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, index);
    const StagedRow<T, C> row(shared, &memory[0], x.data(), nullptr, int(p.cols), p.rows);

    ExpSum total = ExpSum::of_nothing();
    row.template each<1>([&](int column, float(&v)[C.vector]) {
      x.transform(v, column);
      total.add(v);
    });
    total = total.over_block<C.threads>(shared.scratch[0], shared.scratch[1]);
    if constexpr (C.cluster > 1) {
      const ExpSum* slices = row.gather(shared, total);
      total = ExpSum::of_nothing();
      for (int i = 0; i < C.cluster; ++i) total.top = fmax_nan(total.top, slices[i].top);
      for (int i = 0; i < C.cluster; ++i) total.sum += slices[i].relative_to(total.top);
    }
    const Finish<C> finish(total);
    row.template each<1>([&](int column, float(&v)[C.vector]) {
      x.transform(v, column);
      for (int e = 0; e < C.vector; ++e) v[e] = finish(v[e]);
      store_floats(out + column, v);
    });
  }
};

}  // namespace tensorcraft::kernel::softmax
