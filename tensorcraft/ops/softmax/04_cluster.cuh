// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a row too long for the registers of a block is shared by the blocks of a cluster
// (sm_90), so it too is read once and written once where online reads it twice: 2 transfers instead
// of 3. A block finds the maximum and the sum of its slice; one exchange through distributed
// shared memory gives every block those of all. Demands: unit stride along the axis, 16-byte rows.
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct ClusterShared {
  BlockReduce<float> scratch;
  ClusterExchange<ExpSum> slices;  // a sum is relative to the slice's own maximum
};

struct Cluster {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& shared = static_shared<ClusterShared>();
    constexpr int kStep = C.threads * C.vector, kSlice = kStep * C.slots;
    const int64_t row = blockIdx.x / C.cluster;
    const int first = int(ptx::cluster_ctarank()) * kSlice + int(threadIdx.x) * C.vector;
    const int cols = int(p.cols);
    const Logits<T, C> x(p, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row) + first;

    float v[C.slots][C.vector];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      const int left = cols - first - s * kStep;
      if (C.whole || left >= C.vector) {
        x.load(v[s], first + s * kStep);
      } else {  // exp(-inf) adds nothing
        for (int e = 0; e < C.vector; ++e)
          v[s][e] = e < left ? x.at(first + s * kStep + e) : -kInfinity;
      }
    }
    float top = kLowest, sum = 0;
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      for (int e = 0; e < C.vector; ++e) top = fmax_nan(top, v[s][e]);
    top = block_max(shared.scratch, top);
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      float part = 0;
      for (int e = 0; e < C.vector; ++e) part += weight<C>(v[s][e] = hold<C>(v[s][e], top));
      sum += part;
    }
    sum = block_sum(shared.scratch, sum);

    ExpSum slices[C.cluster], total = ExpSum::of_nothing();
    cluster_all_gather(shared.slices, {top, sum}, slices);
    for (const ExpSum& s : slices) total.top = fmax_nan(total.top, s.top);
    for (const ExpSum& s : slices) total.sum += s.relative_to(total.top);
    const Finish<C> finish(total, top);
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      const int left = cols - first - s * kStep;
      for (int e = 0; e < C.vector; ++e) v[s][e] = finish.of_held(v[s][e]);
      if (C.whole || left >= C.vector) {
        store_floats(out + s * kStep, v[s]);
      } else {
        for (int e = 0; e < C.vector; ++e)
          if (e < left) out[s * kStep + e] = T(v[s][e]);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::softmax
