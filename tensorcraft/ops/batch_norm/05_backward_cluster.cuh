// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: as in cluster, the blocks of a cluster share a channel, read both tensors with
// 16-byte accesses if planes allow it, exchange their two sums through distributed shared memory
// and add them in the order of their ranks. The second read finds the channel in the L2 cache.
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/ops/batch_norm/04_backward_naive.cuh"

namespace tensorcraft::kernel::batch_norm {

struct BackwardShared {
  BlockReduce<float> scratch;
  ClusterExchange<GradSums> sums;
};

struct BackwardCluster {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const BackwardParams& p) {
    auto& shared = static_shared<BackwardShared>();
    const int rank = rank_in_cluster(C.cluster);
    const int64_t channel = blockIdx.x / C.cluster;
    const T* grad = static_cast<const T*>(p.grad) + channel * p.grad_layout.channel;
    const T* x = static_cast<const T*>(p.x) + channel * p.x_layout.channel;
    T* out = static_cast<T*>(p.grad_input) + channel * p.out_layout.channel;
    const float mean = p.mean[channel], rstd = p.rstd[channel];
    LongGradSums own;
    float g[C.slots][C.vector], v[C.slots][C.vector];
    for_each_place<C>(p.batch, p.spatial, rank, [&](const Place(&places)[C.slots]) {
      load_places<C>(g, grad, p.grad_layout, places, p.batch);
      load_places<C>(v, x, p.x_layout, places, p.batch);
      GradSums part{};
      for (int s = 0; s < C.slots; ++s) {
        if (places[s].sample >= p.batch) continue;
        for (int e = 0; e < C.vector; ++e) {
          part.grad += g[s][e];
          part.product += g[s][e] * ((v[s][e] - mean) * rstd);
        }
      }
      own.add(part);
    });
    GradSums sums = own.value();
    sums.grad = block_sum(shared.scratch, sums.grad);
    sums.product = block_sum(shared.scratch, sums.product);
    if constexpr (C.cluster > 1) {
      GradSums of[C.cluster];
      cluster_all_gather(shared.sums, sums, of);
      sums = {};
      for (const GradSums& block : of) sums.grad += block.grad, sums.product += block.product;
    }
    const InputGrad f = input_grad<W>(p, channel, sums);
    for_each_place<C>(p.batch, p.spatial, rank, [&](const Place(&places)[C.slots]) {
      load_places<C>(g, grad, p.grad_layout, places, p.batch);
      load_places<C>(v, x, p.x_layout, places, p.batch);
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        if (places[s].sample >= p.batch) continue;
        for (int e = 0; e < C.vector; ++e) g[s][e] = f(g[s][e], v[s][e]);
        store_floats(out + offset<C>(p.out_layout, places[s]), g[s]);
      }
    });
    if (rank == 0 && threadIdx.x == 0) store_grads<W>(p, channel, sums);
  }
};

}  // namespace tensorcraft::kernel::batch_norm
