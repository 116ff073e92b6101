// SPDX-License-Identifier: Apache-2.0
#pragma once
// A channel by itself has no sum that a matrix product could share, so what counts is how often
// memory is read: nine products for two bytes that come and two that go.
//
// A thread has 16 bytes of channels, and several neighbours along a row of the result. Each input
// of a row is read once for all of them: for o outputs of stride 1 and s taps, o + s - 1 instead of
// o s reads. The rows of the window are read again by the thread's neighbours below, out of the
// cache. A block stages the weights of its channels in shared memory as floats, once for many
// outputs.
//
// It demands one channel and one filter a group, channels side by side in x and the result, and
// addresses at multiples of 16 bytes.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// The weights of a block's channels, tap by tap.
template <int kChannels>
struct DepthwiseWeights {
  float at[kDepthwiseMaxTaps][kChannels];
  int has_infinite[Config().threads / 32];  // has a warp staged one?
};

template <class T, Config C>
struct DepthwiseThread {
  static constexpr int lanes_channels = kDepthwiseLanes * C.vector;
  // Inputs of a row that the outputs of a thread read, if the window is known.
  static constexpr int span = C.taps ? (C.outputs - 1) * C.stride + C.taps : 0;

  const Params& p;
  const DepthwiseWeights<lanes_channels>& weights;
  int lane_channel;  // the first of the thread's channels among those of the block
  const T* x;        // of its sample and channels
  float sums[C.outputs][C.vector] = {};

  TC_DEVICE void add_product(int output, const Packed<T, C.vector>& from, int tap) {
#pragma unroll
    for (int i = 0; i < C.vector; ++i)
      sums[output][i] += from[i] * weights.at[tap][lane_channel + i];
  }

  // One row of a window of known size: each input is read once, for the outputs that have it.
  TC_DEVICE void add_known_row(const T* from, int r, int64_t first) {
#pragma unroll
    for (int i = 0; i < span; ++i) {
      const int64_t column = first + i;
      if (!p.columns.has(column)) continue;
      const auto input = Packed<T, C.vector>::load(from + column * p.x_at.column);
#pragma unroll
      for (int output = 0; output < C.outputs; ++output) {
        const int s = i - output * C.stride;
        if (s >= 0 && s < C.taps) add_product(output, input, r * C.taps + s);
      }
    }
  }

  // One row of any window.
  TC_DEVICE void add_row(const T* from, int r, int64_t output_column) {
    const int taps = int(p.columns.taps);
    for (int s = 0; s < taps; ++s) {
#pragma unroll
      for (int output = 0; output < C.outputs; ++output) {
        const int64_t column = p.columns.at(output_column + output, s);
        if (p.columns.has(column))
          add_product(output, Packed<T, C.vector>::load(from + column * p.x_at.column),
                      r * taps + s);
      }
    }
  }

  // The sum of the taps outside the image: zeros, but for weights that are not finite. A loop of
  // its own, as all others skip them.
  TC_DEVICE void add_border(int64_t row, int64_t first_column) {
    const int taps = int(p.columns.taps);
#pragma unroll 1
    for (int tap = 0; tap < int(p.rows.taps) * taps; ++tap) {
      const bool has_row = p.rows.has(p.rows.at(row, tap / taps));
#pragma unroll
      for (int output = 0; output < C.outputs; ++output) {
        if (has_row && p.columns.has(p.columns.at(first_column + output, tap % taps))) continue;
#pragma unroll
        for (int i = 0; i < C.vector; ++i)
          sums[output][i] += 0.0f * weights.at[tap][lane_channel + i];
      }
    }
  }

  TC_DEVICE void compute(int64_t row, int64_t column) {
    const int taps = C.taps ? C.taps : int(p.rows.taps);
    for (int r = 0; r < taps; ++r) {
      const int64_t y = p.rows.at(row, r);
      if (!p.rows.has(y)) continue;
      if constexpr (C.taps != 0)
        add_known_row(x + y * p.x_at.row, r, p.columns.first(column));
      else
        add_row(x + y * p.x_at.row, r, column);
    }
  }
};

template <class T, int kChannels>
TC_DEVICE void stage_weights(const Params& p, DepthwiseWeights<kChannels>& weights,
                             int64_t first_channel, int threads) {
  const int taps = int(p.rows.taps * p.columns.taps);
  bool is_infinite = false;
  const int columns = int(p.columns.taps);
  for (int i = int(threadIdx.x); i < taps * kChannels; i += threads) {
    const int tap = i % taps, c = i / taps;
    const int64_t channel = first_channel + c;
    const T* w = static_cast<const T*>(p.w) + channel * p.w_at.filter + tap / columns * p.w_at.row +
                 tap % columns * p.w_at.column;
    const float value = channel < p.groups ? float(*w) : 0.0f;
    weights.at[tap][c] = value;
    is_infinite |= !(value - value == 0.0f);
  }
  const bool any = __any_sync(0xffffffffu, is_infinite);
  if (threadIdx.x % 32 == 0) weights.has_infinite[threadIdx.x / 32] = any;
}
template <int kChannels>
TC_DEVICE bool has_infinite(const DepthwiseWeights<kChannels>& weights) {
  bool any = false;
#pragma unroll
  for (const int of_warp : weights.has_infinite) any |= of_warp != 0;
  return any;
}

struct Depthwise {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Thread = DepthwiseThread<T, C>;
    auto& weights = static_shared<DepthwiseWeights<Thread::lanes_channels>>();
    const uint32_t parts = uint32_t(div_ceil(p.groups, int64_t(Thread::lanes_channels)));
    const int64_t first_channel = int64_t(blockIdx.x % parts) * Thread::lanes_channels;
    stage_weights<T>(p, weights, first_channel, C.threads);
    __syncthreads();
    const bool adds_border = has_infinite(weights);
    const int lane_channel = int(threadIdx.x) % kDepthwiseLanes * C.vector;
    const int64_t channel = first_channel + lane_channel;
    if (channel >= p.groups) return;
    const int64_t pieces = div_ceil(p.columns.out, int64_t(C.outputs));
    const int64_t all = p.batch * p.rows.out * pieces;
    const int64_t blocks = gridDim.x / parts, per_block = C.threads / kDepthwiseLanes;
    for (int64_t i = blockIdx.x / parts * per_block + threadIdx.x / kDepthwiseLanes; i < all;
         i += blocks * per_block) {
      const int64_t line = i / pieces;
      const Place at{line / p.rows.out, line % p.rows.out, i % pieces * C.outputs};
      Thread thread{p, weights, lane_channel,
                    static_cast<const T*>(p.x) + at.sample * p.x_at.sample + channel};
      thread.compute(at.row, at.column);
      if (adds_border) thread.add_border(at.row, at.column);
#pragma unroll
      for (int output = 0; output < C.outputs; ++output)
        if (at.column + output < p.columns.out)
          finish<T, C>(p, thread.sums[output], {at.sample, at.row, at.column + output}, channel);
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
