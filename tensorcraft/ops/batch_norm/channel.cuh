// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/device/scaled_row.cuh"
#include "tensorcraft/ops/batch_norm/params.h"

// Functions of a channel for all rungs: the fold of its parameters, and the walk over its elements.
namespace tensorcraft::kernel::batch_norm {

// An element of a vector that may not be given.
template <class W>
TC_DEVICE float value_or(const void* values, int64_t channel, float fallback) {
  return values ? float(static_cast<const W*>(values)[channel]) : fallback;
}

// Inference is x * scale + shift: the four parameters of a channel in two.
struct Folded {
  float scale, shift;
};
template <class W>
TC_DEVICE Folded fold(const Params& p, int64_t channel) {
  const float mean = float(static_cast<const W*>(p.running_mean)[channel]);
  const float variance = float(static_cast<const W*>(p.running_var)[channel]);
  const float scale = value_or<W>(p.weight, channel, 1) * rsqrtf(variance + p.eps);
  return {scale, value_or<W>(p.bias, channel, 0) - mean * scale};
}

// Stores what training keeps of a channel; by one thread. The running variance is of the
// population that the batch is drawn from, hence count - 1.
template <class W>
TC_DEVICE void store_statistics(const Params& p, int64_t channel, float mean, float rstd,
                                float squares, float count) {
  if (p.mean) p.mean[channel] = mean;
  if (p.rstd) p.rstd[channel] = rstd;
  const auto blend = [&](const void* before, void* to, float now) {
    if (!to) return;
    const float old = float(static_cast<const W*>(before)[channel]);
    static_cast<W*>(to)[channel] = W((1 - p.momentum) * old + p.momentum * now);
  };
  blend(p.running_mean, p.running_mean_out, mean);
  blend(p.running_var, p.running_var_out, squares / (count - 1));
}

// Accesses of C.vector neighbours within one channel: which sample, which access of its plane.
struct Place {
  int64_t sample, unit;
};

template <Config C>
TC_DEVICE int64_t offset(const Layout& layout, const Place& at) {
  if constexpr (C.vector > 1) return at.sample * layout.batch + at.unit * C.vector;
  return at.sample * layout.batch + layout.spatial.offset<C.nested>(at.unit);
}

// Every access of a channel is visited by one thread of the C.cluster blocks that share it, and
// neighbouring threads visit neighbours. f gets C.slots places at a time, so that their loads are
// in flight together; those with sample >= batch are behind the end. Nothing is divided on the way.
template <Config C, class F>
TC_DEVICE void for_each_place(int64_t batch, int64_t spatial, int rank, F f) {
  const int64_t units = spatial / C.vector;
  const auto first = uint32_t(rank * C.threads) + threadIdx.x;
  constexpr uint32_t kStep = C.cluster * C.threads;
  // Both are small, so more units than 31 bits count divide them as that many do.
  const auto divisor = uint32_t(units < 0x7fffffff ? units : 0x7fffffff);
  const Place step{kStep / divisor, kStep % divisor};
  Place at{first / divisor, first % divisor};
  while (at.sample < batch) {
    Place places[C.slots];
    for (int s = 0; s < C.slots; ++s) {
      places[s] = at;
      at.sample += step.sample;
      at.unit += step.unit;
      if (at.unit >= units) at.unit -= units, ++at.sample;
    }
    f(places);
  }
}

// The elements at some places; those behind the end stay 0.
template <Config C, class T>
TC_DEVICE void load_places(float (&to)[C.slots][C.vector], const T* channel, const Layout& layout,
                           const Place (&places)[C.slots], int64_t batch) {
  AlignedVector<T, C.vector> raw[C.slots];
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    raw[s] = {};
    if (places[s].sample < batch)
      raw[s] = load_vector<C.vector>(channel + offset<C>(layout, places[s]));
  }
#pragma unroll
  for (int s = 0; s < C.slots; ++s)
    for (int e = 0; e < C.vector; ++e) to[s][e] = float(raw[s][e]);
}

// All of a channel in training whose squares a float does not hold, by `group` threads of each
// block of a cluster; any strides.
template <int group, class T, class W, Config C>
TC_COLD void train_extreme_channel(const Params& p, int64_t channel) {
  const T* x = static_cast<const T*>(p.x) + channel * p.x_layout.channel;
  T* out = static_cast<T*>(p.out) + channel * p.out_layout.channel;
  const auto at = [&](const Layout& layout, int64_t i) {
    return i / p.spatial * layout.batch + layout.spatial.offset<C.nested>(i % p.spatial);
  };
  const auto load = [&](int64_t i) { return float(x[at(p.x_layout, i)]); };
  const int64_t count = p.batch * p.spatial;
  const ScaledSums s = scaled_sums<group, true>(count, load);
  const float rstd = rsqrtf(s.squares / float(count) + scaled_eps(p.eps, s.scale));
  const float scale = value_or<W>(p.weight, channel, 1) * rstd;
  const float bias = value_or<W>(p.bias, channel, 0);
  const auto [first, step] = share_of_extreme<group, C.cluster>(count);
#pragma unroll 1
  for (int64_t i = first; i < count; i += step) {
    const float d = load(i) * s.scale - s.pivot - s.shift;
    out[at(p.out_layout, i)] = T(activate(p.activation, d * scale + bias));
  }
  const float unit = inverse_of_power(s.scale);
  if (first == 0)
    store_statistics<W>(p, channel, (s.pivot + s.shift) * unit, rstd * s.scale,
                        s.squares * unit * unit, float(count));
}

TC_DEVICE int rank_in_cluster(int blocks) { return blocks > 1 ? int(blockIdx.x) % blocks : 0; }

}  // namespace tensorcraft::kernel::batch_norm
