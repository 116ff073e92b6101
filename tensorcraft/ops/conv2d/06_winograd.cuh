// SPDX-License-Identifier: Apache-2.0
#pragma once
// Winograd's F(2 x 2, 3 x 3): 4 neighbouring outputs of a 3 x 3 window with stride 1 see 4 x 4
// inputs. In a basis in which their convolution is a product element by element, 16 products give
// what directly are 36, and for a 5 x 5 window 36 give what are 100:
//   out = A' [(G w G') . (B' x B)] A
// Sums over channels are taken in that basis, so each of the 16 or 36 elements is a product of
// matrices of its own, tiles x channels times channels x filters.
//
// Nothing goes through memory in that basis: a block has 32 tiles and 32 or 16 filters, and for 8
// channels at a time each of its threads transforms one input of a tile and one filter. 16 or 8
// threads then multiply each element, 8 x 8 sums a thread. The sums come back through shared
// memory, 8 filters at a time.
//
// Transforms are float32 and add up to 6 inputs, so results differ in the last places from direct
// sums, and an infinity makes the outputs of its tile NaN. Any strides in memory, any dtype.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// Both operands of a step, or sums on their way out.
template <int kTaps>
union WinogradShared {
  static constexpr int elements = winograd_elements(kTaps);  // of a tile in the basis
  struct {
    float inputs[elements][kWinogradChannels][kWinogradTiles + 4];
    float filters[elements][kWinogradChannels][winograd_filters(kTaps) + 4];
  } step;
  alignas(16) float sums[elements][8][kWinogradTiles + 1];  // by filters
};

// A line of inputs in the basis, B' d, in place: polynomials at 0, 1, -1 and infinity, and of 6
// also at 2 and -2.
TC_DEVICE void line_to_basis(float (&d)[4]) {
  const float a = d[0], b = d[1], c = d[2], e = d[3];
  d[0] = a - c;
  d[1] = b + c;
  d[2] = c - b;
  d[3] = b - e;
}
TC_DEVICE void line_to_basis(float (&d)[6]) {
  const float even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
  const float even2 = d[4] - d[2], odd2 = 2 * (d[3] - d[1]);
  const float first = 4 * d[0] - 5 * d[2] + d[4], last = 4 * d[1] - 5 * d[3] + d[5];
  d[0] = first;
  d[1] = even + odd;
  d[2] = even - odd;
  d[3] = even2 + odd2;
  d[4] = even2 - odd2;
  d[5] = last;
}

// B' d B: columns, then rows.
template <int kBasis>
TC_DEVICE void to_basis(float (&d)[kBasis][kBasis]) {
#pragma unroll
  for (int j = 0; j < kBasis; ++j) {
    float line[kBasis];
#pragma unroll
    for (int i = 0; i < kBasis; ++i) line[i] = d[i][j];
    line_to_basis(line);
#pragma unroll
    for (int i = 0; i < kBasis; ++i) d[i][j] = line[i];
  }
#pragma unroll
  for (int i = 0; i < kBasis; ++i) line_to_basis(d[i]);
}

// A line of weights in the basis, G w.
TC_DEVICE void widen(float (&to)[4], const float (&w)[3]) {
  to[0] = w[0];
  to[1] = 0.5f * (w[0] + w[1] + w[2]);
  to[2] = 0.5f * (w[0] - w[1] + w[2]);
  to[3] = w[2];
}
TC_DEVICE void widen(float (&to)[6], const float (&w)[5]) {
  const float even = w[0] + w[2] + w[4], odd = w[1] + w[3];
  const float even2 = w[0] + 4 * w[2] + 16 * w[4], odd2 = 2 * w[1] + 8 * w[3];
  to[0] = w[0] / 4;
  to[1] = (even + odd) / -6;
  to[2] = (even - odd) / -6;
  to[3] = (even2 + odd2) / 24;
  to[4] = (even2 - odd2) / 24;
  to[5] = w[4];
}

// Two outputs of a line of sums, A' m.
TC_DEVICE void narrow(float (&to)[2], const float (&m)[4]) {
  to[0] = m[0] + m[1] + m[2];
  to[1] = m[1] - m[2] - m[3];
}
TC_DEVICE void narrow(float (&to)[2], const float (&m)[6]) {
  to[0] = m[0] + (m[1] + m[2]) + (m[3] + m[4]);
  to[1] = (m[1] - m[2]) + 2 * (m[3] - m[4]) + m[5];
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

template <int kTaps, class T>
TC_DEVICE void bring_input(WinogradShared<kTaps>& shared, const Params& p, const T* x,
                           const WinogradTile& tile, int tile_place, int channel_place,
                           int64_t channel) {
  constexpr int basis = kTaps + 1;
  float d[basis][basis];
#pragma unroll
  for (int i = 0; i < basis; ++i) {
    const int64_t y = tile.row - p.rows.before + i;
#pragma unroll
    for (int j = 0; j < basis; ++j) {
      const int64_t column = tile.column - p.columns.before + j;
      const bool inside =
          tile.exists && channel < p.channels && p.rows.has(y) && p.columns.has(column);
      d[i][j] = inside ? float(x[p.x_at.offset(tile.sample, y, column, channel)]) : 0.0f;
    }
  }
  to_basis(d);
#pragma unroll
  for (int i = 0; i < basis * basis; ++i)
    shared.step.inputs[i][channel_place][tile_place] = d[i / basis][i % basis];
}

template <int kTaps, class T>
TC_DEVICE void bring_filter(WinogradShared<kTaps>& shared, const Params& p, const T* w, bool exists,
                            int filter_place, int channel_place, int64_t channel) {
  constexpr int basis = kTaps + 1;
  float rows[kTaps][basis];
#pragma unroll
  for (int r = 0; r < kTaps; ++r) {
    float of[kTaps];
#pragma unroll
    for (int s = 0; s < kTaps; ++s)
      of[s] = exists && channel < p.channels
                  ? float(w[r * p.w_at.row + s * p.w_at.column + channel * p.w_at.channel])
                  : 0.0f;
    widen(rows[r], of);
  }
#pragma unroll
  for (int j = 0; j < basis; ++j) {
    float line[kTaps], column[basis];
#pragma unroll
    for (int r = 0; r < kTaps; ++r) line[r] = rows[r][j];
    widen(column, line);
#pragma unroll
    for (int i = 0; i < basis; ++i)
      shared.step.filters[i * basis + j][channel_place][filter_place] = column[i];
  }
}

// A' m A of one tile and filter, stored.
template <int kTaps, class T, Config C>
TC_DEVICE void store_tile(const WinogradShared<kTaps>& shared, const Params& p,
                          const WinogradTile& tile, int tile_place, int filter_place,
                          int64_t filter) {
  constexpr int basis = kTaps + 1;
  float rows[2][basis];
#pragma unroll
  for (int j = 0; j < basis; ++j) {
    float line[basis], two[2];
#pragma unroll
    for (int i = 0; i < basis; ++i) line[i] = shared.sums[i * basis + j][filter_place][tile_place];
    narrow(two, line);
    rows[0][j] = two[0];
    rows[1][j] = two[1];
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float sums[2];
    narrow(sums, rows[i]);
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
    constexpr int part = 8, filters = winograd_filters(C.taps);
    constexpr int across = filters / part;  // threads of an element along filters
    using Shared = WinogradShared<C.taps>;
    static_assert(C.threads == Shared::elements * (kWinogradTiles / part) * across);
    static_assert(sizeof(Shared) == winograd_shared_bytes(C.taps));
    auto& shared = dynamic_shared<Shared>();
    const int64_t tiles =
        p.batch * div_ceil(p.rows.out, int64_t(2)) * div_ceil(p.columns.out, int64_t(2));
    const BlockTile block = block_tile<kWinogradTiles, filters>(tiles, p.filters);
    const int64_t first_filter = block.batch * p.filters + block.col;
    const int thread = int(threadIdx.x), row = thread / across * part % kWinogradTiles;
    const int element = thread / across * part / kWinogradTiles, col = thread % across * part;
    // A thread transforms neighbours along channels, or along tiles.
    const int channel_place = C.along_k ? thread % kWinogradChannels : thread / kWinogradTiles;
    const int place = C.along_k ? thread / kWinogradChannels : thread % kWinogradTiles;
    const WinogradTile mine(p, block.row + place);
    const T* x = static_cast<const T*>(p.x) + block.batch * p.channels * p.x_at.channel;
    const T* w = static_cast<const T*>(p.w) + (first_filter + place) * p.w_at.filter;
    const bool has_filter = block.col + place < p.filters;
    // A few threads of 36 elements have nothing to bring.
    const bool brings = place < kWinogradTiles && channel_place < kWinogradChannels;

    float sums[part][part] = {};
    for (int64_t c0 = 0; c0 < p.channels; c0 += kWinogradChannels) {
      const int64_t channel = c0 + channel_place;
      if (brings) bring_input(shared, p, x, mine, place, channel_place, channel);
      if (brings && place < filters)
        bring_filter(shared, p, w, has_filter, place, channel_place, channel);
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
    for (int turn = 0; turn < across; ++turn) {
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
      if (at.exists && filter < part && tile < kWinogradTiles && from < p.filters)
        store_tile<C.taps, T, C>(shared, p, at, tile, filter, block.batch * p.filters + from);
      __syncthreads();
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
