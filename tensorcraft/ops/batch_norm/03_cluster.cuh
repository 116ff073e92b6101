// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training. What changed: the blocks of a cluster (sm_90; one block elsewhere) share a channel, so
// that few channels fill the GPU too. Each joins the moments of what it reads, with 16-byte
// accesses if planes allow it; the blocks exchange theirs through distributed shared memory and
// join them in the order of their ranks, so the result is the same every time. The second read, for
// the result, is of a channel that was read just before, and finds most of it in the L2 cache.
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/ops/batch_norm/channel.cuh"

namespace tensorcraft::kernel::batch_norm {

struct ClusterShared {
  BlockReduce<float> scratch;
  ClusterExchange<Moments> moments;
};

struct Cluster {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = static_shared<ClusterShared>();
    const int rank = rank_in_cluster(C.cluster);
    const int64_t channel = blockIdx.x / C.cluster;
    const T* x = static_cast<const T*>(p.x) + channel * p.x_layout.channel;
    T* out = static_cast<T*>(p.out) + channel * p.out_layout.channel;
    const float pivot = finite_or_zero(float(x[0]));
    LongMoments own;
    float v[C.slots][C.vector];
    for_each_place<C>(p.batch, p.spatial, rank, [&](const Place(&places)[C.slots]) {
      load_places<C>(v, x, p.x_layout, places, p.batch);
      bool present[C.slots];
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        present[s] = places[s].sample < p.batch;
        for (int e = 0; e < C.vector; ++e) v[s][e] -= pivot;
      }
      own.add(v, present);
    });
    Moments all = block_moments(shared.scratch, own.value());
    if constexpr (C.cluster > 1) {
      Moments of[C.cluster];
      cluster_all_gather(shared.moments, all, of);
      all = {};
      for (const Moments& block : of) all.join(block);
    }
    const float rstd = rsqrtf(all.squares / all.count + p.eps);
    if (is_extreme<T>(rstd)) return train_extreme_channel<C.threads, T, W, C>(p, channel);
    const float scale = value_or<W>(p.weight, channel, 1) * rstd;
    const float bias = value_or<W>(p.bias, channel, 0);
    for_each_place<C>(p.batch, p.spatial, rank, [&](const Place(&places)[C.slots]) {
      load_places<C>(v, x, p.x_layout, places, p.batch);
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        if (places[s].sample >= p.batch) continue;
        for (int e = 0; e < C.vector; ++e)
          v[s][e] = activate<C.activation>((v[s][e] - pivot - all.mean) * scale + bias);
        store_floats(out + offset<C>(p.out_layout, places[s]), v[s]);
      }
    });
    if (rank == 0 && threadIdx.x == 0)
      store_statistics<W>(p, channel, pivot + all.mean, rstd, all.squares, all.count);
  }
};

}  // namespace tensorcraft::kernel::batch_norm
