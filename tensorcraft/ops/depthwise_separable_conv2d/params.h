// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/conv_activation.h"
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/window.h"

namespace tensorcraft::kernel::depthwise_separable_conv2d {

// Where the weights of the windows are, and those of the product, in elements.
struct WindowStrides {
  int64_t channel, row, column;
};
struct ProductStrides {
  int64_t filter, channel;
};

// Run time: what the host passes to both rungs. Images are seen channels last, whatever their
// layout; biases and residual may be null.
struct Params {
  const void *x, *depthwise, *pointwise, *depthwise_bias, *bias, *residual;
  void* out;
  int64_t batch, channels, filters;
  WindowAxis rows, columns;
  ImageStrides x_at, out_at, residual_at;
  WindowStrides depthwise_at;
  ProductStrides pointwise_at;
  int64_t depthwise_bias_stride, bias_stride;
  ConvActivation depthwise_activation, activation;  // fused has them compiled in
  // fused: pieces of a row in all, and over how many blocks the filters of a place are spread. A
  // band is so many rows; pieces are counted down a band, then along it, then band by band.
  uint32_t pieces = 0, parts = 1;
  Divider by_parts = {}, by_rows = {}, by_pieces = {}, by_bands = {};
};

// Compile time: each value of a Config that a choice gives is a kernel of its own.
struct Config {
  int threads = 256;
  ConvActivation depthwise_activation = ConvActivation::none;
  ConvActivation activation = ConvActivation::none;
  int vector = 1;                             // filters that one store of fused takes
  int taps = 0, stride = 0;                   // fused: of a square window without dilation; 0: any
  int block_m = 0, block_n = 0, block_k = 0;  // fused: places, filters and channels of a step
  int warp_m = 0, warp_n = 0;                 // fused: a warp's part of it
  int stages = 1;                             // fused: steps that shared memory holds
};

// The size of a block of naive: places, and channels of a step.
inline constexpr int kNaivePlaces = 8, kNaiveChannels = 32;

// A piece of a row is what one thread of fused computes at once: so many neighbouring places, each
// of 16 bytes of channels. There is room for the weights of so many taps.
inline constexpr int kPiece = 4, kFusedVector = 8, kFusedMaxTaps = 25;

// Channels that a block of fused filters at once, a piece a thread.
TC_HOST_DEVICE constexpr int pass_channels(const Config& c) {
  return c.threads * kPiece * kFusedVector / c.block_m;
}
// The weights of two passes, of which the warps' sums take the place.
TC_HOST_DEVICE constexpr int pass_weights_bytes(const Config& c) {
  const int taps = c.taps ? c.taps * c.taps : kFusedMaxTaps;
  return 2 * taps * (pass_channels(c) + 4) * 4;
}
TC_HOST_DEVICE constexpr int sums_bytes(const Config& c) {
  return c.threads / 32 * 16 * (c.warp_n + 8) * 4;
}
// Dynamic shared memory of fused but for the filtered places: stages of the product's weights, and
// where the results go.
TC_HOST_DEVICE constexpr int fused_fixed_bytes(const Config& c) {
  const int weights = pass_weights_bytes(c), sums = sums_bytes(c);
  const int stages = c.stages * c.block_n * c.block_k * 2, places = c.block_m * 16;
  return round_up(stages + (weights > sums ? weights : sums) + places, 128);
}

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d
