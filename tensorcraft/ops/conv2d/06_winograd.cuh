// SPDX-License-Identifier: Apache-2.0
#pragma once
// Winograd's F(2 x 2, 3 x 3): 4 neighbouring outputs of a 3 x 3 window with stride 1 see 4 x 4
// inputs. In a basis in which their convolution is a product element by element, 16 products give
// what directly are 36:
//   out = A' [(G w G') . (B' x B)] A
// Sums over channels are taken in that basis, so each of the 16 elements is a product of matrices
// of its own, tiles x channels times channels x filters.
//
// Nothing goes through memory in that basis: a block has 32 tiles and 32 filters, and for 8
// channels at a time each of its 256 threads transforms one 4 x 4 input and one filter. 16 threads
// then multiply each element, 8 x 8 sums a thread. The sums come back through shared memory, 8
// filters at a time.
//
// Transforms are float32 and add up to 4 inputs, so results differ in the last places from direct
// sums, and an infinity makes the outputs of its tile NaN. Any strides in memory, any dtype.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

inline constexpr int kElements = 16;  // of a tile in the basis

// Both operands of a step, or sums on their way out.
union WinogradShared {
  struct {
    float inputs[kElements][kWinogradChannels][kWinogradTiles + 4];
    float filters[kElements][kWinogradChannels][kWinogradFilters + 4];
  } step;
  alignas(16) float sums[kElements][8][kWinogradTiles + 1];  // by filters
};

// B' d B: rows, then columns.
TC_DEVICE void to_basis(float (&d)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float a = d[0][i], b = d[1][i], c = d[2][i], e = d[3][i];
    d[0][i] = a - c;
    d[1][i] = b + c;
    d[2][i] = c - b;
    d[3][i] = b - e;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float a = d[i][0], b = d[i][1], c = d[i][2], e = d[i][3];
    d[i][0] = a - c;
    d[i][1] = b + c;
    d[i][2] = c - b;
    d[i][3] = b - e;
  }
}

// One line of G w: 3 weights as 4.
TC_DEVICE void widen(float (&to)[4], float a, float b, float c) {
  to[0] = a;
  to[1] = 0.5f * (a + b + c);
  to[2] = 0.5f * (a - b + c);
  to[3] = c;
}

// The tile of 2 x 2 outputs with this number; tiles of an image row by row.
struct WinogradTile {
  int64_t sample, row, column;
  bool exists;

  TC_DEVICE WinogradTile(const Params& p, int64_t number) {
    const int64_t across = div_ceil(p.columns.out, int64_t(2));
    const int64_t down = div_ceil(p.rows.out, int64_t(2)), line = number / across;
    sample = line / down;
    row = line % down * 2;
    column = number % across * 2;
    exists = sample < p.batch;
  }
};

template <class T>
TC_DEVICE void bring_input(WinogradShared& shared, const Params& p, const T* x,
                           const WinogradTile& tile, int tile_place, int channel_place,
                           int64_t channel) {
  float d[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t y = tile.row - p.rows.before + i;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t column = tile.column - p.columns.before + j;
      const bool inside =
          tile.exists && channel < p.channels && p.rows.has(y) && p.columns.has(column);
      d[i][j] = inside ? float(x[p.x_at.offset(tile.sample, y, column, channel)]) : 0.0f;
    }
  }
  to_basis(d);
#pragma unroll
  for (int i = 0; i < kElements; ++i)
    shared.step.inputs[i][channel_place][tile_place] = d[i / 4][i % 4];
}

template <class T>
TC_DEVICE void bring_filter(WinogradShared& shared, const Params& p, const T* w, bool exists,
                            int filter_place, int channel_place, int64_t channel) {
  float rows[3][4];
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    float of[3];
#pragma unroll
    for (int s = 0; s < 3; ++s)
      of[s] = exists && channel < p.channels
                  ? float(w[r * p.w_at.row + s * p.w_at.column + channel * p.w_at.channel])
                  : 0.0f;
    widen(rows[r], of[0], of[1], of[2]);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float column[4];
    widen(column, rows[0][j], rows[1][j], rows[2][j]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      shared.step.filters[i * 4 + j][channel_place][filter_place] = column[i];
  }
}

// A' m A of one tile and filter, stored.
template <class T, Config C>
TC_DEVICE void store_tile(const WinogradShared& shared, const Params& p, const WinogradTile& tile,
                          int tile_place, int filter_place, int64_t filter) {
  float rows[2][4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const auto m = [&](int i) { return shared.sums[i * 4 + j][filter_place][tile_place]; };
    rows[0][j] = m(0) + m(1) + m(2);
    rows[1][j] = m(1) - m(2) - m(3);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float sums[2] = {rows[i][0] + rows[i][1] + rows[i][2],
                           rows[i][1] - rows[i][2] - rows[i][3]};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float one[1] = {sums[j]};
      const Place at{tile.sample, tile.row + i, tile.column + j};
      if (at.row < p.rows.out && at.column < p.columns.out) finish<T, C>(p, one, at, filter);
    }
  }
}

struct Winograd {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int part = 8, lanes = 4;  // of the threads of an element, along tiles and filters
    static_assert(C.threads == kElements * lanes * lanes && kWinogradTiles == part * lanes &&
                  kWinogradFilters == part * lanes);
    auto& shared = static_shared<WinogradShared>();
    const int64_t tiles =
        p.batch * div_ceil(p.rows.out, int64_t(2)) * div_ceil(p.columns.out, int64_t(2));
    const BlockTile block = block_tile<kWinogradTiles, kWinogradFilters>(tiles, p.filters);
    const int64_t first_filter = block.batch * p.filters + block.col;
    const int thread = int(threadIdx.x), element = thread / (lanes * lanes);
    const int row = thread / lanes % lanes * part, col = thread % lanes * part;
    // What a thread transforms: neighbours along channels, or along tiles.
    const int channel_place = C.along_k ? thread % kWinogradChannels : thread / kWinogradTiles;
    const int place = C.along_k ? thread / kWinogradChannels : thread % kWinogradTiles;
    const WinogradTile mine(p, block.row + place);
    const T* x = static_cast<const T*>(p.x) + block.batch * p.channels * p.x_at.channel;
    const T* w = static_cast<const T*>(p.w) + (first_filter + place) * p.w_at.filter;
    const bool has_filter = block.col + place < p.filters;

    float sums[part][part] = {};
    for (int64_t c0 = 0; c0 < p.channels; c0 += kWinogradChannels) {
      bring_input(shared, p, x, mine, place, channel_place, c0 + channel_place);
      bring_filter(shared, p, w, has_filter, place, channel_place, c0 + channel_place);
      __syncthreads();
#pragma unroll
      for (int c = 0; c < kWinogradChannels; ++c) {
        AlignedVector<float, 4> a[2], b[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          a[i] = load_vector<4>(&shared.step.inputs[element][c][row + i * 4]);
          b[i] = load_vector<4>(&shared.step.filters[element][c][col + i * 4]);
        }
#pragma unroll
        for (int i = 0; i < part; ++i)
#pragma unroll
          for (int j = 0; j < part; ++j) sums[i][j] += a[i / 4][i % 4] * b[j / 4][j % 4];
      }
      __syncthreads();
    }
    // 8 filters at a time, those of one of the threads of an element; then a tile and a filter a
    // thread.
#pragma unroll 1
    for (int turn = 0; turn < lanes; ++turn) {
      if (col == turn * part) {
#pragma unroll
        for (int i = 0; i < part; ++i)
#pragma unroll
          for (int j = 0; j < part; ++j) shared.sums[element][j][row + i] = sums[i][j];
      }
      __syncthreads();
      const int filter = C.along_k ? thread % part : thread / kWinogradTiles;
      const int tile = C.along_k ? thread / part : thread % kWinogradTiles;
      const WinogradTile at(p, block.row + tile);
      const int64_t from = block.col + turn * part + filter;
      if (at.exists && from < p.filters)
        store_tile<T, C>(shared, p, at, tile, filter, block.batch * p.filters + from);
      __syncthreads();
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
