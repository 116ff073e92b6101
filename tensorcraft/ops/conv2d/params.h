// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/conv_activation.h"
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/tensor_map.h"
#include "tensorcraft/device/warpgroup.h"
#include "tensorcraft/device/window.h"

namespace tensorcraft::kernel::conv2d {

// Where the weights are, in elements.
struct FilterStrides {
  int64_t filter, row, column, channel;
};

// Run time: what the host passes to every rung of conv2d. Images are seen channels last, whatever
// their layout. Channels and filters are those of one group; bias and residual may be null.
struct Params {
  const void *x, *w, *bias, *residual;
  void* out;
  int64_t batch, groups, channels, filters;
  WindowAxis rows, columns;
  ImageStrides x_at, out_at, residual_at;
  FilterStrides w_at;
  int64_t bias_stride;
  Divider by_columns, by_image;  // outputs of a row and of an image, if all are below 2^31
  // sliding: rows of a strip, strips in all, beside one another and below one another.
  int strip_rows = 0;
  uint32_t strips = 0;
  Divider by_pieces = {}, by_segments = {};
};

// The size of a block of depthwise: threads along channels, and room for the weights of so many
// taps.
inline constexpr int kDepthwiseLanes = 8, kDepthwiseMaxTaps = 49;

// Bytes of channels side by side that a block of sliding has.
inline constexpr int kSlidingBytes = 64;

// A tile of direct: outputs, of which a warp has two rows, and filters; taps in whole steps, and
// room for the pixels of an image that the outputs see.
inline constexpr int kDirectWarps = 4, kDirectRows = 8, kDirectColumns = 16, kDirectFilters = 64;
inline constexpr int kDirectMaxTaps = 52, kDirectMaxPixels = 800;
// direct_wgmma: pairs of pixels of a line that a tile brings, and how many of its pixels are before
// those of the first output.
inline constexpr int kStemPairs = 24, kStemMargin = 8;

// Compile time: each value of a Config that a choice gives is a kernel of its own.
struct Config {
  int threads = 256;
  ConvActivation activation = ConvActivation::none;
  int vector = 1;   // channels that one access moves
  int taps = 0;     // depthwise, sliding, winograd, direct_wgmma: rows and columns of the window
  int stride = 0;   // depthwise, sliding: of the window along columns; 0: any
  int outputs = 1;  // depthwise, sliding: neighbours along a row that one thread computes
  int along_k = 0;  // tiled: neighbouring threads read channels, else places
  int block_m = 0, block_n = 0, block_k = 0;  // a block's tile, and one step along k
  int warp_m = 0, warp_n = 0;                 // implicit_gemm: a warp's part of it
  int stages = 1;     // steps that shared memory holds; sliding: rows on their way
  int consumers = 0;  // implicit_wgmma: warpgroups that multiply
};

// Further params of implicit_wgmma: how the copy engine finds windows of x, the filters by
// channels and taps, and the result by places.
struct MappedParams : Params {
  TensorMap x_map, w_map, out_map;
};
// The part of the result that one store of the copy engine takes: 64 places of so many filters, in
// lines of 128 or 64 bytes, and how many such slots a consumer has.
TC_HOST_DEVICE constexpr int result_slot_columns(const Config& c, int element_bytes) {
  return (c.block_n * element_bytes % 128 == 0 ? 128 : 64) / element_bytes;
}
inline constexpr int kResultSlots = 2;
// Dynamic shared memory of implicit_wgmma: stages, slots, bias, and two barriers a stage.
TC_HOST_DEVICE constexpr int wgmma_shared_bytes(const Config& c, int element_bytes) {
  const int stages = c.stages * c.block_k * (c.block_m + c.block_n) * element_bytes;
  const int slots =
      kResultSlots * kGroupRows * result_slot_columns(c, element_bytes) * element_bytes;
  return round_up(stages + c.consumers * (slots + c.block_n * 4) + 2 * c.stages * 8, 1024);
}

// Dynamic shared memory of direct: the sums of results that are stored one by one leave as floats.
TC_HOST_DEVICE constexpr int direct_shared_bytes(const Config& c) {
  return (c.vector == 1 ? 58 : 50) * 1024;
}

// Dynamic shared memory of direct_wgmma: two tiles of pixels, twice, and the sums of 64 outputs,
// twice.
TC_HOST_DEVICE constexpr int direct_wgmma_shared_bytes(const Config& c) {
  const int pixels = 4 * ((kDirectRows - 1) * 2 + c.taps) * kStemPairs * 16;
  return round_up(pixels, 128) + 2 * 64 * kDirectFilters * 2 + 128 * 2;
}

// The size of a block of winograd: tiles of 2 x 2 outputs, channels of a step, and by the taps of a
// line of the window the elements of a tile, filters, and dynamic shared memory.
inline constexpr int kWinogradTiles = 32, kWinogradChannels = 8;
TC_HOST_DEVICE constexpr int winograd_elements(int taps) { return (taps + 1) * (taps + 1); }
TC_HOST_DEVICE constexpr int winograd_filters(int taps) { return taps == 3 ? 32 : 16; }
TC_HOST_DEVICE constexpr int winograd_shared_bytes(int taps) {
  return winograd_elements(taps) * kWinogradChannels *
         (kWinogradTiles + 4 + winograd_filters(taps) + 4) * 4;
}

// Run time of im2col. An element of a window is one of its taps' channels; nchw counts channels
// first, nhwc taps.
struct Im2colParams {
  const void* x;
  void* out;
  int64_t batch, channels;
  WindowAxis rows, columns;
  ImageStrides x_at;
  int64_t out_sample, out_position, out_element;  // strides
  int64_t channels_first;
};

struct Im2colConfig {
  int threads = 256;
};

}  // namespace tensorcraft::kernel::conv2d
