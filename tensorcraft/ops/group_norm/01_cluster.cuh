// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the blocks of a cluster (sm_90; one block elsewhere) share a row, neighbouring
// threads read neighbouring elements, 16 bytes at a time if rows allow it, with C.slots accesses
// in flight. Each block joins the moments of what it reads, and the blocks exchange theirs through
// distributed shared memory and join them in the order of their ranks. Two reads for one write, the
// second from the L2 cache if all rows in flight fit it. Demands: dense tensors.
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/ops/group_norm/row.cuh"

namespace tensorcraft::kernel::group_norm {

struct ClusterShared {
  BlockReduce<float> scratch;
  ClusterExchange<Moments> moments;
};

// Calls f(columns) with C.slots columns at a time, until all of the row that are this thread's are
// done; those from cols on are behind the end.
template <Config C, class F>
TC_DEVICE void for_each_columns(int cols, int rank, F f) {
  constexpr int kStep = C.cluster * C.threads * C.vector;
  for (int i = (rank * C.threads + int(threadIdx.x)) * C.vector; i < cols; i += kStep * C.slots) {
    int columns[C.slots];
    for (int s = 0; s < C.slots; ++s) columns[s] = i + s * kStep;
    f(columns);
  }
}

template <Config C, class T>
TC_DEVICE void load_columns(float (&to)[C.slots][C.vector], const T* x,
                            const int (&columns)[C.slots], int cols) {
  AlignedVector<T, C.vector> raw[C.slots];
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    raw[s] = {};
    if (columns[s] < cols) raw[s] = load_vector<C.vector>(x + columns[s]);
  }
#pragma unroll
  for (int s = 0; s < C.slots; ++s)
    for (int e = 0; e < C.vector; ++e) to[s][e] = float(raw[s][e]);
}

struct Cluster {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = static_shared<ClusterShared>();
    const int rank = C.cluster > 1 ? int(blockIdx.x) % C.cluster : 0;
    const int64_t row = blockIdx.x / C.cluster;
    const int cols = int(p.cols);
    const T* x = static_cast<const T*>(p.x) + row * p.cols;
    T* out = static_cast<T*>(p.out) + row * p.cols;
    const float pivot = finite_or_zero(float(x[0]));
    LongMoments own;
    float h[C.slots][C.vector];
    for_each_columns<C>(cols, rank, [&](const int(&columns)[C.slots]) {
      load_columns<C>(h, x, columns, cols);
      bool present[C.slots];
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        present[s] = columns[s] < cols;
        for (int e = 0; e < C.vector; ++e) h[s][e] -= pivot;
      }
      own.add(h, present);
    });
    Moments all = block_moments(shared.scratch, own.value());
    if constexpr (C.cluster > 1) {
      Moments of[C.cluster];
      cluster_all_gather(shared.moments, all, of);
      all = {};
      for (const Moments& block : of) all.join(block);
    }
    const Statistics s{pivot, all.mean, rsqrtf(all.squares * p.inverse_cols + p.eps)};
    if (is_extreme<T>(s.rstd)) return store_extreme_row<T, W, C>(p, row);
    const int64_t channel = first_channel(p, row);
    for_each_columns<C>(cols, rank, [&](const int(&columns)[C.slots]) {
      load_columns<C>(h, x, columns, cols);
#pragma unroll
      for (int i = 0; i < C.slots; ++i)
        if (columns[i] < cols)
          store_neighbours<T, W, C>(p, out, channel, uint32_t(columns[i]), h[i], s);
    });
  }
};

}  // namespace tensorcraft::kernel::group_norm
