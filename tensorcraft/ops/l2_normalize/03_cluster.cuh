// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a row too long for the registers of a block is shared by the blocks of a cluster
// (sm_90), so it too is read once and written once. Each block sums its slice; one exchange through
// distributed shared memory gives every block the sums of all, which it adds in the same order.
// Demands: unit strides along the axis, rows of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/l2_normalize/params.h"

namespace tensorcraft::kernel::l2_normalize {

struct ClusterShared {
  BlockReduce<float> scratch;
  ClusterExchange<float> slices;
};

struct Cluster {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& shared = static_shared<ClusterShared>();
    const int64_t row = blockIdx.x / C.cluster;
    const int first = int(ptx::cluster_ctarank()) * RowSlots<T, C>::kStep * C.slots;
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row) + first;
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row) + first;
    RowSlots<T, C> slots;
    slots.load(x, nullptr, int(p.cols) - first);
    float slices[C.cluster], squares = 0;
    cluster_all_gather(shared.slices, slots.sum(shared.scratch, [](float v) { return v * v; }),
                       slices);
    for (const float slice : slices) squares += slice;
    const float scale = 1.0f / fmax_nan(sqrtf(squares), p.eps);
    if (store_extreme_unit<T, C, true>(p, scale, x - first, out - first)) return;
    slots.each([&](int column, float(&v)[C.vector]) {
      for (int e = 0; e < C.vector; ++e) v[e] *= scale;
      store_floats(out + column, v);
    });
  }
};

}  // namespace tensorcraft::kernel::l2_normalize
