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
// bytes. The pixels of the next tile go to a second buffer, so a tile has one barrier, and a warp
// brings its share while others still multiply.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/slab.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// A line of weights is 432 bytes, an odd number of chunks, so 8 of them are in 8 bank groups; so is
// a line of 64 rounded sums, of 144.
template <class T, Config C>
struct DirectShared {
  struct Weights {
    T at[kDirectFilters][kDirectMaxTaps * 4 + 8];
    TC_DEVICE const T* chunk(int line, int n) const { return &at[line][n * kVectorSize<T>]; }
  };
  using Rounded = T[kDirectColumns][kDirectFilters + 8];
  alignas(16) Weights weights;
  alignas(16) Select<C.vector == 1, Slab<kDirectFilters>, Rounded> slabs[kDirectWarps];
  AlignedVector<T, 4> pixels[2][kDirectMaxPixels];
  int distances[kDirectMaxTaps];  // of a tap, in pixels; -1: there is none
  alignas(8) float bias[kDirectFilters];
};

// Where the outputs of a block are.
struct DirectTile {
  int sample, row, column;

  TC_DEVICE DirectTile(const Params& p, uint32_t number) {
    const uint32_t across = div_ceil(uint32_t(p.columns.out), uint32_t(kDirectColumns));
    const uint32_t down = div_ceil(uint32_t(p.rows.out), uint32_t(kDirectRows));
    const uint32_t line = number / across;
    sample = int(line / down);
    row = int(line % down) * kDirectRows;
    column = int(number % across) * kDirectColumns;
  }
};

// A tile's part of x is so many pixels wide, and has so many.
TC_DEVICE int pixel_pitch(const Params& p) {
  return (kDirectColumns - 1) * int(p.columns.stride) + int(p.columns.taps);
}
TC_DEVICE int num_pixels(const Params& p) {
  return ((kDirectRows - 1) * int(p.rows.stride) + int(p.rows.taps)) * pixel_pitch(p);
}

// Lanes are neighbours along the taps of a filter.
template <class T, Config C>
TC_DEVICE void bring_weights(DirectShared<T, C>& shared, const Params& p, int64_t first_filter) {
  const int taps = int(p.rows.taps * p.columns.taps), columns = int(p.columns.taps);
  const int pitch = pixel_pitch(p), filters = min_of(p.filters - first_filter, kDirectFilters);
  for (int i = int(threadIdx.x); i < kDirectMaxTaps; i += C.threads)
    shared.distances[i] = i < taps ? i / columns * pitch + i % columns : -1;
  const T* bias = static_cast<const T*>(p.bias) + first_filter * p.bias_stride;
  for (int i = int(threadIdx.x); i < kDirectFilters; i += C.threads)
    shared.bias[i] = p.bias && i < filters ? float(bias[i * p.bias_stride]) : 0.0f;
  const T* w = static_cast<const T*>(p.w) + first_filter * p.w_at.filter;
  for (int tap = int(threadIdx.x) % 32; tap < kDirectMaxTaps; tap += 32) {
    const T* from = w + tap / columns * p.w_at.row + tap % columns * p.w_at.column;
#pragma unroll 4
    for (int f = int(threadIdx.x) / 32; f < kDirectFilters; f += kDirectWarps) {
      AlignedVector<T, 4> four;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const bool exists = f < filters && tap < taps && c < int(p.channels);
        four[c] = exists ? from[f * p.w_at.filter + c * p.w_at.channel] : T();
      }
      *reinterpret_cast<AlignedVector<T, 4>*>(&shared.weights.at[f][tap * 4]) = four;
    }
  }
}

// A thread's share of the pixels of a tile.
template <class T, Config C>
struct PixelCopier {
  const Params& p;
  int pitch, pixels, row, column;  // the place of the thread's first pixel

  TC_DEVICE explicit PixelCopier(const Params& params)
      : p(params),
        pitch(pixel_pitch(p)),
        pixels(num_pixels(p)),
        row(int(threadIdx.x) / pitch),
        column(int(threadIdx.x) % pitch) {}

  TC_DEVICE void copy(AlignedVector<T, 4> (&to)[kDirectMaxPixels], const DirectTile& tile) const {
    const T* x = static_cast<const T*>(p.x) + tile.sample * p.x_at.sample;
    const int down = C.threads / pitch, right = C.threads % pitch;  // to the thread's next pixel
    const int first = tile.column * int(p.columns.stride) - int(p.columns.before);
    int y = tile.row * int(p.rows.stride) - int(p.rows.before) + row, across = column;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < pixels; i += C.threads) {
      const bool inside =
          uint32_t(y) < uint32_t(p.rows.in) && uint32_t(first + across) < uint32_t(p.columns.in);
      const int offset = y * int(p.x_at.row) + (first + across) * int(p.x_at.column);
      AlignedVector<T, 4> pixel;
#pragma unroll
      for (int c = 0; c < 4; ++c)
        pixel[c] = inside && c < int(p.channels) ? x[offset + c * int(p.x_at.channel)] : T();
      to[i] = pixel;
      y += down;
      across += right;
      if (across >= pitch) {
        across -= pitch;
        ++y;
      }
    }
  }
};

// Two channels of a pixel as mma takes them.
template <class T>
TC_DEVICE uint32_t half_pixel(const AlignedVector<T, 4>* pixel, int half) {
  return reinterpret_cast<const uint32_t*>(pixel)[half];
}

// The sums of a warp's two rows of 16 outputs.
template <class T, Config C>
TC_DEVICE void add_taps(WarpSums<32, kDirectFilters>& sums, const DirectShared<T, C>& shared,
                        const AlignedVector<T, 4>* pixels, const Params& p) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int stride = int(p.columns.stride), half = lane % 2;
  const int below = int(p.rows.stride) * pixel_pitch(p);
  const AlignedVector<T, 4>* const corner = pixels + warp * 2 * below + lane / 4 * stride;
  const auto add_step = [&](int step, bool is_last) {
    int taps[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) taps[k] = shared.distances[step * 4 + lane % 4 / 2 + k * 2];
    Fragments<32, kDirectFilters> f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // 16 outputs of a row, and 8 of them
      const int right = i % 2 * 8 * stride;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const bool exists = !is_last || taps[k] >= 0;
        f.a[i / 2][i % 2 + k * 2] =
            exists ? half_pixel(corner + i / 2 * below + right + taps[k], half) : 0;
      }
    }
#pragma unroll
    for (int j = 0; j < kDirectFilters / 16; ++j)
      load_fragments<T, true, true>(f.b[j], shared.weights, j * 16, step * 16);
    sums.template add_product<T>(f);
  };
  // Only the last step has taps that do not exist.
  const int last = div_ceil(int(p.rows.taps * p.columns.taps), 4) - 1;
  for (int step = 0; step < last; ++step) add_step(step, false);
  add_step(last, true);
}

// Stores four filters of an output, which are counted in a tile row by row, one by one.
template <class T, Config C>
struct DirectEpilogue {
  const Params& p;
  const DirectTile& tile;
  TC_DEVICE void store(const float (&sums)[4], int64_t output, int64_t filter) const {
    const Place at{tile.sample, tile.row + output / kDirectColumns,
                   tile.column + output % kDirectColumns};
    if (at.row >= p.rows.out || at.column >= p.columns.out) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float one[1] = {sums[i]};
      if (filter + i < p.filters) finish<T, C>(p, one, at, filter + i);
    }
  }
};

// A thread's sums begin with the bias, if they are not finished one by one.
template <class T, Config C>
TC_DEVICE void begin_sums(WarpSums<32, kDirectFilters>& sums, const DirectShared<T, C>& shared) {
#pragma unroll
  for (int j = 0; j < kDirectFilters / 8; ++j) {
    const float* const bias = &shared.bias[j * 8 + int(threadIdx.x) % 4 * 2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums.at[i][j][e] = C.vector == 1 ? 0.0f : bias[e % 2];
    }
  }
}

// Activates the sums of a warp and stores them in units of 8 filters.
template <class T, Config C>
TC_DEVICE void store_rounded(DirectShared<T, C>& shared, const Params& p, const DirectTile& tile,
                             const WarpSums<32, kDirectFilters>& sums, int64_t first_filter) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int columns = int(p.columns.out) - tile.column;
  const int filters = min_of(p.filters - first_filter, kDirectFilters);
  auto& slab = shared.slabs[warp];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = tile.row + warp * 2 + i;
    if (row >= int(p.rows.out)) return;
    __syncwarp();  // the lanes have read what the last row was
#pragma unroll
    for (int j = 0; j < kDirectFilters / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x[2] = {sums.at[i][j][half * 2], sums.at[i][j][half * 2 + 1]};
        store_activated<T, C, 2>(x, &slab[lane / 4 + half * 8][j * 8 + lane % 4 * 2]);
      }
    }
    __syncwarp();
    T* const out =
        static_cast<T*>(p.out) + p.out_at.offset(tile.sample, row, tile.column, first_filter);
    const int filter = lane % 8 * 8;
#pragma unroll
    for (int from = 0; from < kDirectColumns; from += 4) {
      const int column = from + lane / 8;
      if (column < columns && filter < filters)
        Packed<T, 8>::load(&slab[column][filter]).store(out + column * p.out_at.column + filter);
    }
  }
}

struct Direct {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    static_assert(C.threads == 32 * kDirectWarps && kDirectRows == 2 * kDirectWarps);
    auto& shared = dynamic_shared<DirectShared<T, C>>();
    static_assert(sizeof(shared) <= direct_shared_bytes(C));
    const uint32_t parts = div_ceil(uint32_t(p.filters), uint32_t(kDirectFilters));
    const int64_t first_filter = int64_t(blockIdx.x % parts) * kDirectFilters;
    const uint32_t tiles = uint32_t(p.batch) *
                           div_ceil(uint32_t(p.rows.out), uint32_t(kDirectRows)) *
                           div_ceil(uint32_t(p.columns.out), uint32_t(kDirectColumns));
    const uint32_t step = gridDim.x / parts;
    uint32_t i = blockIdx.x / parts;
    const PixelCopier<T, C> copier(p);
    bring_weights(shared, p, first_filter);
    if (i < tiles) copier.copy(shared.pixels[0], DirectTile(p, i));
    __syncthreads();
    for (int turn = 0; i < tiles; turn ^= 1, i += step) {
      WarpSums<32, kDirectFilters> sums;
      begin_sums(sums, shared);
      add_taps(sums, shared, shared.pixels[turn], p);
      const DirectTile tile(p, i);
      if constexpr (C.vector == 1)
        store_sums(DirectEpilogue<T, C>{p, tile}, shared.slabs[threadIdx.x / 32], sums,
                   threadIdx.x / 32 * 32, first_filter);
      else
        store_rounded(shared, p, tile, sums, first_filter);
      // Nobody reads these pixels since the last barrier.
      if (i + step < tiles) copier.copy(shared.pixels[turn ^ 1], DirectTile(p, i + step));
      __syncthreads();
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
