// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution as a product whose left matrix, a row of windows for each place of the result, is
// made in shared memory only: a tile of places times taps and channels, beside one of filters. An
// input is read from memory once for each tile of filters, a weight once for each tile of places;
// from there a thread takes 4 of each for 16 products, so 2 loads of 16 bytes serve 16 of them.
//
// What lies outside an image is 0 in the tile, so the products ask nothing. Neighbouring threads
// read along channels if those are side by side in x, else along places. Any strides, any sizes,
// any dtype.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// Lines of k, padded so that writes along k are in different banks.
template <Config C>
struct TiledShared {
  alignas(16) float a[C.block_k][C.block_m + 4], b[C.block_k][C.block_n + 4];
};

// Where element k of a window is, from its first place on, and its weight.
struct Tap {
  int64_t down, right, x_offset, w_offset;
};
TC_DEVICE Tap tap_of(const Params& p, int64_t k) {
  const int64_t channel = k % p.channels, tap = k / p.channels;
  const int64_t r = tap / p.columns.taps, s = tap % p.columns.taps;
  const int64_t down = r * p.rows.dilation, right = s * p.columns.dilation;
  return {down, right, down * p.x_at.row + right * p.x_at.column + channel * p.x_at.channel,
          r * p.w_at.row + s * p.w_at.column + channel * p.w_at.channel};
}

// The window of a row of the product: its first place, perhaps outside the image.
struct Corner {
  int64_t row, column, offset;
  bool exists;
};
TC_DEVICE Place place_of_index(const Params& p, int64_t m) {
  const int64_t line = m / p.columns.out;
  return {line / p.rows.out, line % p.rows.out, m % p.columns.out};
}
TC_DEVICE Corner corner_of(const Params& p, int64_t m, int64_t rows) {
  const Place at = place_of_index(p, m < rows ? m : 0);
  const int64_t row = p.rows.first(at.row), column = p.columns.first(at.column);
  return {row, column, at.sample * p.x_at.sample + row * p.x_at.row + column * p.x_at.column,
          m < rows};
}

// A thread's share of the tile of windows: one k and several places, or the reverse.
template <class T, Config C>
struct TiledWindows {
  static constexpr int share = C.block_m * C.block_k / C.threads;
  static constexpr int num_corners = C.along_k ? share : 1;
  const Params& p;
  const T* x;
  int64_t k_end;
  Corner corners[num_corners];

  TC_DEVICE static int place(int i) {
    return C.along_k ? int(threadIdx.x) / C.block_k + i * (C.threads / C.block_k)
                     : int(threadIdx.x) % C.block_m;
  }
  TC_DEVICE static int step(int i) {
    return C.along_k ? int(threadIdx.x) % C.block_k
                     : int(threadIdx.x) / C.block_m + i * (C.threads / C.block_m);
  }
  TC_DEVICE TiledWindows(const Params& params, const T* from, int64_t first_row, int64_t rows,
                         int64_t k)
      : p(params), x(from), k_end(k) {
#pragma unroll
    for (int i = 0; i < num_corners; ++i) corners[i] = corner_of(p, first_row + place(i), rows);
  }
  TC_DEVICE void copy(TiledShared<C>& to, int64_t k0) const {
    Tap tap = tap_of(p, k0 + step(0));
#pragma unroll
    for (int i = 0; i < share; ++i) {
      if (!C.along_k && i > 0) tap = tap_of(p, k0 + step(i));
      const Corner& corner = corners[C.along_k ? i : 0];
      const bool inside = corner.exists && k0 + step(i) < k_end &&
                          p.rows.has(corner.row + tap.down) &&
                          p.columns.has(corner.column + tap.right);
      to.a[step(i)][place(i)] = inside ? float(x[corner.offset + tap.x_offset]) : 0.0f;
    }
  }
};

// Copies filters, along k.
template <class T, Config C>
TC_DEVICE void copy_filters(TiledShared<C>& to, const Params& p, const T* w, int64_t filters,
                            int64_t k0, int64_t k_end) {
  constexpr int share = C.block_n * C.block_k / C.threads;
  const int k = int(threadIdx.x) % C.block_k;
  const Tap tap = tap_of(p, k0 + k);
#pragma unroll
  for (int i = 0; i < share; ++i) {
    const int n = int(threadIdx.x) / C.block_k + i * (C.threads / C.block_k);
    const bool inside = n < filters && k0 + k < k_end;
    to.b[k][n] = inside ? float(w[n * p.w_at.filter + tap.w_offset]) : 0.0f;
  }
}

struct Tiled {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int part = 4, lanes = C.block_n / part;
    static_assert(C.threads == lanes * (C.block_m / part) && C.block_m == C.block_n);
    auto& shared = static_shared<TiledShared<C>>();
    const int64_t m = p.batch * p.rows.out * p.columns.out;
    const int64_t k = p.rows.taps * p.columns.taps * p.channels;
    const BlockTile tile = block_tile<C.block_m, C.block_n>(m, p.filters);
    const int64_t first_filter = tile.batch * p.filters + tile.col;
    const TiledWindows<T, C> windows(
        p, static_cast<const T*>(p.x) + tile.batch * p.channels * p.x_at.channel, tile.row, m, k);
    const T* w = static_cast<const T*>(p.w) + first_filter * p.w_at.filter;
    // Neighbouring threads store along the filters of a place, or along places.
    const int inner = int(threadIdx.x) % lanes * part, outer = int(threadIdx.x) / lanes * part;
    const int row = C.along_k ? outer : inner, col = C.along_k ? inner : outer;
    float sums[part][part] = {};
    for (int64_t k0 = 0; k0 < k; k0 += C.block_k) {
      windows.copy(shared, k0);
      copy_filters<T, C>(shared, p, w, p.filters - tile.col, k0, k);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < C.block_k; ++i) {
        const auto a = load_vector<part>(&shared.a[i][row]),
                   b = load_vector<part>(&shared.b[i][col]);
#pragma unroll
        for (int r = 0; r < part; ++r)
#pragma unroll
          for (int c = 0; c < part; ++c) sums[r][c] += a[r] * b[c];
      }
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < part; ++r) {
      if (tile.row + row + r >= m) break;
      const Place at = place_of_index(p, tile.row + row + r);
#pragma unroll
      for (int c = 0; c < part; ++c) {
        const float sum[1] = {sums[r][c]};
        if (tile.col + col + c < p.filters) finish<T, C>(p, sum, at, first_filter + col + c);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
