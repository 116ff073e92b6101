// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution is a product: a row is a place of the result, a column is a filter, and k counts
// taps and the channels of each. The matrix of windows is never in memory: 16 bytes of one of its
// rows are 8 channels of one tap, so cp.async takes them from the image itself, and fills with 0
// what is outside it. From shared memory on it is the product of gemm's swizzled: mma.sync, stages
// of a ring, fragments of the next step under way. Each input is read from the cache once for every
// tap and tile of filters, and each weight once for every tile of places.
//
// Where the window is, a thread finds for its rows once: the first row and column of each, both in
// one register, and the offset of that place. What a step adds is the same for all of them, as a
// tap is a distance.
//
// It demands 16-bit elements, or float32 that may be rounded to tf32, channels side by side and
// whole units of 16 bytes in a group, weights without gaps behind one another as taps and channels,
// and addresses at multiples of 16 bytes.
#include "tensorcraft/device/copy_ring.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/operand_tiles.cuh"
#include "tensorcraft/device/tile/slab.cuh"
#include "tensorcraft/device/tile/swizzled_tile.cuh"
#include "tensorcraft/device/tile/tile_copier.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// A thread's share of the copies of windows. Sizes of images and windows are below 2^14, and the
// elements of x below 2^31.
template <class T, class Tile, Config C>
struct WindowCopier {
  static constexpr int line_step = C.threads / Tile::per_line, count = Tile::lines / line_step;
  static_assert(C.threads % Tile::per_line == 0 && count * line_step == Tile::lines);
  static constexpr int kNoRow = -32768;  // no tap brings it into an image

  struct Line {
    int32_t offset;       // of the window's first element
    int16_t row, column;  // its place, perhaps outside the image
  };
  const Params& p;
  const T* x;
  Line lines[count];
  int line, n;  // the place of the thread's first chunk in a tile
  int channel;  // of the thread's chunk in the next step
  int tap_row = 0, tap_column = 0;

  TC_DEVICE WindowCopier(const Params& params, const T* from, int64_t first_row, int64_t rows)
      : p(params),
        x(from),
        line(threadIdx.x / Tile::per_line),
        n(threadIdx.x % Tile::per_line),
        channel(n * kVectorSize<T>) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int64_t m = first_row + line + i * line_step;
      const Place at = place_of_row(p, uint32_t(m < rows ? m : 0));
      const int row = int(p.rows.first(at.row)), column = int(p.columns.first(at.column));
      lines[i] = {int32_t(at.sample * p.x_at.sample + row * p.x_at.row + column * p.x_at.column),
                  int16_t(m < rows ? row : kNoRow), int16_t(column)};
    }
    find_tap();
  }

  // Steps over the taps that end before `channel`.
  TC_DEVICE void find_tap() {
    while (channel >= int(p.channels)) {
      channel -= int(p.channels);
      if (++tap_column < int(p.columns.taps)) continue;
      tap_column = 0;
      ++tap_row;
    }
  }

  TC_DEVICE void copy(Tile& tile) {
    const int down = tap_row * int(p.rows.dilation), right = tap_column * int(p.columns.dilation);
    const int offset = down * int(p.x_at.row) + right * int(p.x_at.column) + channel;
    const bool has_tap = tap_row < int(p.rows.taps);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int row = lines[i].row + down, column = lines[i].column + right;
      const bool inside = has_tap && uint32_t(row) < uint32_t(p.rows.in) &&
                          uint32_t(column) < uint32_t(p.columns.in);
      ptx::cp_async_cg_16(&tile.at[Tile::place(line + i * line_step, n)],
                          x + (inside ? lines[i].offset + offset : 0), inside ? kVectorBytes : 0);
    }
    channel += C.block_k;
    find_tap();
  }
};

// Stores four filters of a row of the product.
template <class T, Config C>
struct GemmEpilogue {
  const Params& p;
  int64_t rows, first_filter;

  TC_DEVICE void store(const float (&sums)[4], int64_t row, int64_t col) const {
    if (row >= rows || col >= p.filters) return;
    const Place at = place_of_row(p, uint32_t(row));
    if constexpr (C.vector == 4) {
      finish<T, C>(p, sums, at, first_filter + col);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float one[1] = {sums[i]};
        if (col + i < p.filters) finish<T, C>(p, one, at, first_filter + col + i);
      }
    }
  }
};

// Stages of both operands, and after the last step a slab for each warp's sums instead.
template <class T, Config C>
union GemmShared {
  using Stage = OperandTiles<
      SwizzledTile, T,
      StepShape{
          .m = C.block_m, .n = C.block_n, .k = C.block_k, .a_along_k = true, .b_along_k = true}>;
  Stage stages[C.stages];
  Slab<C.warp_n> slabs[C.threads / 32];
};

struct ImplicitGemm {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Stage = typename GemmShared<T, C>::Stage;
    constexpr int steps = C.block_k / kMmaDepth<T>, warps_n = C.block_n / C.warp_n;
    static_assert(steps % 2 == 0, "an even number of steps alternates fragments");
    static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
    auto& shared = dynamic_shared<GemmShared<T, C>>();
    const int64_t m = p.batch * p.rows.out * p.columns.out;
    const int64_t k = p.rows.taps * p.columns.taps * p.channels;
    const BlockTile tile = block_tile<C.block_m, C.block_n>(m, p.filters);
    const int64_t group = tile.batch, first_filter = group * p.filters;
    const int warp = int(threadIdx.x) / 32;
    const int row = warp / warps_n * C.warp_m, col = warp % warps_n * C.warp_n;

    WindowCopier<T, typename Stage::A, C> windows(
        p, static_cast<const T*>(p.x) + group * p.channels, tile.row, m);
    TileCopier<T, typename Stage::B, C.threads, true> weights(
        static_cast<const T*>(p.w) + (first_filter + tile.col) * p.w_at.filter, p.w_at.filter);
    const int cols = min_of(p.filters - tile.col, C.block_n);
    int64_t to_copy = 0;  // the first k that is not on its way
    const auto copy = [&](int stage) {
      if (to_copy >= k) return;
      windows.copy(shared.stages[stage].a);
      weights.copy(shared.stages[stage].b, cols, min_of(k - to_copy, C.block_k));
      weights.source += C.block_k;
      to_copy += C.block_k;
    };
    CopyRing<C.stages> ring;
    WarpSums<C.warp_m, C.warp_n> sums = {};
    Fragments<C.warp_m, C.warp_n> fragments[2];
    const auto load = [&](int stage, int step) {
      fragments[step % 2].load(shared.stages[stage], row, col, step * kMmaDepth<T>);
    };
#pragma unroll
    for (int i = 0; i < C.stages - 1; ++i) ring.fill(copy);
    int stage = ring.next();
    load(stage, 0);
    for (int64_t k0 = 0; k0 < k; k0 += C.block_k) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step == 0) ring.fill(copy);
        if (step + 1 < steps) {
          load(stage, step + 1);
        } else {
          stage = ring.next();
          if (k0 + C.block_k < k) load(stage, 0);
        }
        sums.template add_product<T>(fragments[step % 2]);
      }
    }
    ring.finish();
    store_sums(GemmEpilogue<T, C>{p, m, first_filter}, shared.slabs[warp], sums, tile.row + row,
               tile.col + col);
  }
};

}  // namespace tensorcraft::kernel::conv2d
