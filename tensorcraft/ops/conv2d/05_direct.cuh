// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first layer of a network has 3 or 4 channels: no 16 bytes of memory are channels of one tap,
// so implicit_gemm cannot copy them, and tiled computes without tensor cores.
//
// Here a block brings the part of the image that its outputs see to shared memory once, each pixel
// as 4 channels of 8 bytes, the missing ones 0. A step of mma, 16 of k, is then 4 taps of any
// window: what a lane reads is at its output's corner plus the distance of the tap, so the matrix
// of windows needs no memory at all, and no padding but that of the last step:
//   7 x 7 taps of 3 channels = 147 of k become 13 steps of 16.
// Weights are in shared memory in the same order, once for all tiles of a block, which goes on to
// further tiles. Neighbouring lanes read neighbouring pixels: with a stride of 2 columns, 128
// bytes.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/slab.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// A line of weights is 432 bytes, an odd number of chunks, so 8 of them are in 8 bank groups.
template <class T>
struct DirectShared {
  struct Weights {
    T at[kDirectFilters][kDirectMaxTaps * 4 + 8];
    TC_DEVICE const T* chunk(int line, int n) const { return &at[line][n * kVectorSize<T>]; }
  };
  alignas(16) Weights weights;
  Slab<kDirectFilters> slabs[kDirectWarps];
  AlignedVector<T, 4> pixels[kDirectMaxPixels];
  int distances[kDirectMaxTaps];  // of a tap, in pixels; -1: there is none
};

// Where the outputs of a block are, and what they see.
struct DirectTile {
  int64_t sample, row, column;
  int pitch, pixels;  // of a row in shared memory, and of all

  TC_DEVICE DirectTile(const Params& p, int64_t number)
      : pitch((kDirectColumns - 1) * int(p.columns.stride) + int(p.columns.taps)),
        pixels(((kDirectRows - 1) * int(p.rows.stride) + int(p.rows.taps)) * pitch) {
    const int64_t across = div_ceil(p.columns.out, int64_t(kDirectColumns));
    const int64_t down = div_ceil(p.rows.out, int64_t(kDirectRows)), line = number / across;
    sample = line / down;
    row = line % down * kDirectRows;
    column = number % across * kDirectColumns;
  }
};

template <class T>
TC_DEVICE void bring_weights(DirectShared<T>& shared, const Params& p, int64_t first_filter,
                             int threads) {
  const int taps = int(p.rows.taps * p.columns.taps), columns = int(p.columns.taps);
  const int pitch = (kDirectColumns - 1) * int(p.columns.stride) + columns;
  constexpr int line = kDirectMaxTaps * 4;
  for (int i = int(threadIdx.x); i < kDirectMaxTaps; i += threads)
    shared.distances[i] = i < taps ? i / columns * pitch + i % columns : -1;
  for (int i = int(threadIdx.x); i < kDirectFilters * line; i += threads) {
    const int f = i / line, tap = i % line / 4, c = i % 4;
    const bool exists = first_filter + f < p.filters && tap < taps && c < int(p.channels);
    const T* w = static_cast<const T*>(p.w) + (first_filter + f) * p.w_at.filter +
                 tap / columns * p.w_at.row + tap % columns * p.w_at.column + c * p.w_at.channel;
    shared.weights.at[f][i % line] = exists ? *w : T();
  }
}

template <class T>
TC_DEVICE void bring_pixels(DirectShared<T>& shared, const Params& p, const DirectTile& tile,
                            int threads) {
  const T* x = static_cast<const T*>(p.x) + tile.sample * p.x_at.sample;
  for (int i = int(threadIdx.x); i < tile.pixels; i += threads) {
    const int64_t y = p.rows.first(tile.row) + i / tile.pitch;
    const int64_t column = p.columns.first(tile.column) + i % tile.pitch;
    const bool inside = p.rows.has(y) && p.columns.has(column);
    AlignedVector<T, 4> pixel;
#pragma unroll
    for (int c = 0; c < 4; ++c)
      pixel[c] = inside && c < int(p.channels) ? x[p.x_at.offset(0, y, column, c)] : T();
    shared.pixels[i] = pixel;
  }
}

// Two channels of a pixel as mma takes them.
template <class T>
TC_DEVICE uint32_t half_pixel(const AlignedVector<T, 4>* pixel, int half) {
  return reinterpret_cast<const uint32_t*>(pixel)[half];
}

// The sums of a warp's two rows of 16 outputs.
template <class T>
TC_DEVICE void add_taps(WarpSums<32, kDirectFilters>& sums, const DirectShared<T>& shared,
                        const Params& p, const DirectTile& tile) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int stride = int(p.columns.stride), half = lane % 2;
  const int steps = div_ceil(int(p.rows.taps * p.columns.taps), 4);
  Fragments<32, kDirectFilters> f;
  for (int step = 0; step < steps; ++step) {
    const int low = shared.distances[step * 4 + lane % 4 / 2];
    const int high = shared.distances[step * 4 + lane % 4 / 2 + 2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const AlignedVector<T, 4>* corner =
          shared.pixels + (warp * 2 + i) * int(p.rows.stride) * tile.pitch + lane / 4 * stride;
      f.a[i][0] = low < 0 ? 0 : half_pixel(corner + low, half);
      f.a[i][1] = low < 0 ? 0 : half_pixel(corner + 8 * stride + low, half);
      f.a[i][2] = high < 0 ? 0 : half_pixel(corner + high, half);
      f.a[i][3] = high < 0 ? 0 : half_pixel(corner + 8 * stride + high, half);
    }
#pragma unroll
    for (int j = 0; j < kDirectFilters / 16; ++j)
      load_fragments<T, true, true>(f.b[j], shared.weights, j * 16, step * 16);
    sums.template add_product<T>(f);
  }
}

// Stores four filters of an output, which are counted in a tile row by row.
template <class T, Config C>
struct DirectEpilogue {
  const Params& p;
  const DirectTile& tile;
  TC_DEVICE void store(const float (&sums)[4], int64_t output, int64_t filter) const {
    const Place at{tile.sample, tile.row + output / kDirectColumns,
                   tile.column + output % kDirectColumns};
    if (at.row >= p.rows.out || at.column >= p.columns.out) return;
    if constexpr (C.vector == 4) {
      if (filter < p.filters) finish<T, C>(p, sums, at, filter);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float one[1] = {sums[i]};
        if (filter + i < p.filters) finish<T, C>(p, one, at, filter + i);
      }
    }
  }
};

struct Direct {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    static_assert(C.threads == 32 * kDirectWarps && kDirectRows == 2 * kDirectWarps);
    auto& shared = dynamic_shared<DirectShared<T>>();
    static_assert(sizeof(shared) <= kDirectSharedBytes);
    const int64_t parts = div_ceil(p.filters, int64_t(kDirectFilters));
    const int64_t first_filter = blockIdx.x % parts * kDirectFilters;
    bring_weights(shared, p, first_filter, C.threads);
    const int64_t tiles = p.batch * div_ceil(p.rows.out, int64_t(kDirectRows)) *
                          div_ceil(p.columns.out, int64_t(kDirectColumns));
    const int warp = int(threadIdx.x) / 32;
    for (int64_t i = blockIdx.x / parts; i < tiles; i += gridDim.x / parts) {
      const DirectTile tile(p, i);
      bring_pixels(shared, p, tile, C.threads);
      __syncthreads();
      WarpSums<32, kDirectFilters> sums = {};
      add_taps(sums, shared, p, tile);
      store_sums(DirectEpilogue<T, C>{p, tile}, shared.slabs[warp], sums, warp * 32, first_filter);
      __syncthreads();  // nobody reads the pixels any more
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
