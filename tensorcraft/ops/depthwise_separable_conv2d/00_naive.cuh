// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block has a few places of the result, by 256 filters, one a thread. Step by step it filters
// some channels of its places into shared memory, once for all its filters, and each thread adds
// their products with its weights. So an output costs C products and C taps / 256 more, where
// filtering for each output by itself would cost C taps. The values between are rounded to the
// dtype, as memory would have them. Any strides.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/depthwise_separable_conv2d/finish.cuh"

namespace tensorcraft::kernel::depthwise_separable_conv2d {

TC_DEVICE Place place_of(const Params& p, int64_t i) {
  const int64_t line = i / p.columns.out;
  return {line / p.rows.out, line % p.rows.out, i % p.columns.out};
}

// One kernel serves all activations.
template <class T>
TC_DEVICE float activate_as(ConvActivation activation, float x) {
  switch (activation) {
    case ConvActivation::none:
      return x;
    case ConvActivation::relu:
      return activate<ConvActivation::relu, T>(x);
    case ConvActivation::relu6:
      return activate<ConvActivation::relu6, T>(x);
    case ConvActivation::gelu:
      return activate<ConvActivation::gelu, T>(x);
    case ConvActivation::silu:
      return activate<ConvActivation::silu, T>(x);
    case ConvActivation::hard_swish:
      return activate<ConvActivation::hard_swish, T>(x);
  }
  return x;
}

// The value between both convolutions of a place and a channel.
template <class T>
TC_DEVICE float filtered(const Params& p, const Place& at, int64_t channel) {
  const T* w = static_cast<const T*>(p.depthwise) + channel * p.depthwise_at.channel;
  float sum = 0;
  for (int64_t r = 0; r < p.rows.taps; ++r) {
    const int64_t y = p.rows.at(at.row, r);
    for (int64_t s = 0; s < p.columns.taps; ++s) {
      const int64_t x = p.columns.at(at.column, s);
      const bool inside = p.rows.has(y) && p.columns.has(x);
      const float from = inside ? element<T>(p.x, p.x_at.offset(at.sample, y, x, channel)) : 0.0f;
      sum += from * float(w[r * p.depthwise_at.row + s * p.depthwise_at.column]);
    }
  }
  if (p.depthwise_bias) sum += element<T>(p.depthwise_bias, channel * p.depthwise_bias_stride);
  return float(T(activate_as<T>(p.depthwise_activation, sum)));
}

struct FilteredPlaces {
  float at[kNaivePlaces][kNaiveChannels];
  int64_t out[kNaivePlaces], residual[kNaivePlaces];  // where their results are
};

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    static_assert(C.threads == kNaivePlaces * kNaiveChannels, "a thread filters one value");
    auto& middle = static_shared<FilteredPlaces>();
    const uint32_t parts = uint32_t(div_ceil(p.filters, int64_t(C.threads)));
    const int64_t first = int64_t(blockIdx.x / parts) * kNaivePlaces;
    const int64_t filter = int64_t(blockIdx.x % parts) * C.threads + threadIdx.x;
    const int64_t places = p.batch * p.rows.out * p.columns.out;
    const int mine = int(threadIdx.x) / kNaiveChannels, lane = int(threadIdx.x) % kNaiveChannels;
    const bool exists = first + mine < places;
    const Place at = place_of(p, exists ? first + mine : 0);
    if (lane == 0) {
      middle.out[mine] = p.out_at.offset(at.sample, at.row, at.column, 0);
      middle.residual[mine] = p.residual_at.offset(at.sample, at.row, at.column, 0);
    }
    __syncthreads();
    const T* w = static_cast<const T*>(p.pointwise) + filter * p.pointwise_at.filter;
    float sums[kNaivePlaces] = {};
    for (int64_t channel = 0; channel < p.channels; channel += kNaiveChannels) {
      const int64_t left = p.channels - channel;
      __syncthreads();
      middle.at[mine][lane] = exists && lane < left ? filtered<T>(p, at, channel + lane) : 0.0f;
      __syncthreads();
      if (filter >= p.filters) continue;
      const int count = left < kNaiveChannels ? int(left) : kNaiveChannels;
      for (int c = 0; c < count; ++c) {
        const float by = float(w[(channel + c) * p.pointwise_at.channel]);
#pragma unroll
        for (int i = 0; i < kNaivePlaces; ++i) sums[i] += middle.at[i][c] * by;
      }
    }
    if (filter >= p.filters) return;
    const float bias = p.bias ? element<T>(p.bias, filter * p.bias_stride) : -0.0f;
#pragma unroll
    for (int i = 0; i < kNaivePlaces; ++i) {
      if (first + i >= places) return;
      const float sum[1] = {sums[i] + bias};  // -0 changes none
      finish<T>(p, sum, middle.residual[i] + filter * p.residual_at.channel,
                middle.out[i] + filter * p.out_at.channel,
                [&](float x) { return activate_as<T>(p.activation, x); });
    }
  }
};

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d
