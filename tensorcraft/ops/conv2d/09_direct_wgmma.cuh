// SPDX-License-Identifier: Apache-2.0
#pragma once
// direct for images of 3 channels and strides of 2, on wgmma, which reads windows where they lie.
//
// With 4 channels of 8 bytes the windows of neighbouring outputs begin 16 bytes apart. So a piece
// that wgmma takes, here 8 outputs by 2 taps, is 128 bytes of pixels, and overlaps the next one.
// The product is filters by outputs: threads keep the weights in registers for the whole kernel.
//   Of 16 x 8 x 16 products direct reads 192 bytes of shared memory, 128 of weights; here it is 64.
// Pixels of the next tile are on their way while the block multiplies. Taps of a row are odd in
// number, so one of its pairs is half a neighbour, perhaps an infinity: a second copy of the pixels
// has zeros there.
// It demands sm_90, a window of 3 x 3 or 7 x 7, and lines of pixels in units of 4 bytes.
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/stmatrix.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/ops/conv2d/05_direct.cuh"

namespace tensorcraft::kernel::conv2d {

// Two pixels.
using PixelPair = Vec4<uint32_t>;

// A row of a window: pairs that are two taps, and one that is half a neighbour.
template <Config C>
inline constexpr int kWholePairs = (C.taps - 1) / 2;
template <Config C>
inline constexpr int kRowSteps = (kWholePairs<C> + 1) / 2;  // of two pairs

// The sums of 8 x 8 outputs, rounded, a line an output: chunk n of 8 filters is at n ^ line % 8.
template <class T>
struct RoundedOutputs {
  Packed<T, 8> at[kGroupRows][kDirectFilters / 8];
  TC_DEVICE Packed<T, 8>& chunk(uint32_t line, uint32_t n) { return at[line][n ^ line % 8]; }
};

template <class T, Config C>
struct DirectWgmmaShared {
  static constexpr int rows = (kDirectRows - 1) * 2 + C.taps;
  // Elements of a staged filter; 8 of them are in different banks.
  static constexpr int pitch = C.taps * C.taps * 4 + 4;
  struct Tile {
    PixelPair whole[rows][kStemPairs], halves[rows][kStemPairs];
  };
  union {
    alignas(128) Tile tiles[2];
    T staged[kDirectFilters][pitch];  // weights on their way to registers
  };
  alignas(128) RoundedOutputs<T> slabs[2];
  float bias[kDirectFilters];
};

// The place of a window's row that is its first tap: rows begin at even pixels.
TC_DEVICE int first_tap_place(const Params& p) { return int(p.columns.before) % 2; }

// A thread's part of the weights, as wgmma's operand A.
template <class T, Config C>
struct StemWeights {
  using Shared = DirectWgmmaShared<T, C>;
  uint32_t at[C.taps][kRowSteps<C>][4];

  // Brings the bias too.
  TC_DEVICE void bring(Shared& shared, const Params& p, int first_filter) {
    const int filters = min_of(p.filters - first_filter, kDirectFilters);
    stage(shared, p, first_filter, filters);
    __syncthreads();
    const int lane = int(threadIdx.x) % 32, filter = int(threadIdx.x) / 32 * 16 + lane / 4;
    const int lead = first_tap_place(p), last = lead ? 0 : kWholePairs<C>;
#pragma unroll
    for (int r = 0; r < C.taps; ++r) {
#pragma unroll
      for (int s = 0; s < kRowSteps<C>; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int pair = i < 2 ? lead + s * 2 : s + 1 < kRowSteps<C> ? lead + s * 2 + 1 : last;
          const int tap = pair * 2 + lane % 4 / 2 - lead;
          const T* const from = shared.staged[filter + i % 2 * 8] + (r * C.taps + tap) * 4;
          at[r][s][i] = tap >= 0 && tap < C.taps
                            ? *reinterpret_cast<const uint32_t*>(from + lane % 2 * 2)
                            : 0;
        }
      }
    }
    const T* const from = static_cast<const T*>(p.bias) + first_filter * p.bias_stride;
    const int thread = int(threadIdx.x);
    if (thread < kDirectFilters)
      shared.bias[thread] = p.bias && thread < filters ? float(from[thread * p.bias_stride]) : 0.0f;
    __syncthreads();  // pixels come where the weights were
  }

 private:
  // A warp brings a filter at a time, its lanes neighbours along channels, columns and rows.
  TC_DEVICE static void stage(Shared& shared, const Params& p, int first_filter, int filters) {
    constexpr int kOfFilter = C.taps * C.taps * 4, kMine = div_ceil(kOfFilter, 32), kAtOnce = 8;
    const int lane = int(threadIdx.x) % 32, channel = lane % 4;
    const T* const w = static_cast<const T*>(p.w);
    const auto has = [&](int k) { return k + 1 < kMine || lane + k * 32 < kOfFilter; };
    int from[kMine];
#pragma unroll
    for (int k = 0; k < kMine; ++k) {
      const int tap = (lane + k * 32) / 4;
      from[k] = tap / C.taps * int(p.w_at.row) + tap % C.taps * int(p.w_at.column) +
                channel * int(p.w_at.channel);
    }
    // All loads of some filters are on their way before the first is stored.
#pragma unroll 1
    for (int first = int(threadIdx.x) / 32; first < kDirectFilters;
         first += kDirectWarps * kAtOnce) {
      T values[kAtOnce][kMine];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int f = first + i * kDirectWarps, at = (first_filter + f) * int(p.w_at.filter);
#pragma unroll
        for (int k = 0; k < kMine; ++k)
          values[i][k] = has(k) && channel < 3 && f < filters ? w[at + from[k]] : T();
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int k = 0; k < kMine; ++k)
          if (has(k)) shared.staged[first + i * kDirectWarps][lane + k * 32] = values[i][k];
      }
    }
  }
};

// A thread's pairs of half of a tile's rows: one column, every kRowsAtOnce-th row.
template <class T, Config C>
struct PairCopier {
  using Shared = DirectWgmmaShared<T, C>;
  static constexpr int kRowsAtOnce = C.threads / kStemPairs;
  static constexpr int kMine = div_ceil(Shared::rows, 2 * kRowsAtOnce);
  uint32_t words[kMine][3];
  bool inside[kMine];

  TC_DEVICE static int row(int half, int i) {
    return int(threadIdx.x) / kStemPairs + (half * kMine + i) * kRowsAtOnce;
  }
  TC_DEVICE static int pair() { return int(threadIdx.x) % kStemPairs; }

  // Outside the image some pixels are loaded too: a load under a condition would be waited for
  // where its words meet the zeros, not where they are used.
  TC_DEVICE void load(const Params& p, const DirectTile& tile, int half) {
    const int column = tile.column * 2 - kStemMargin + pair() * 2;
    const T* const image = static_cast<const T*>(p.x) + tile.sample * p.x_at.sample;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int y = tile.row * 2 - int(p.rows.before) + row(half, i);
      inside[i] = uint32_t(column) < uint32_t(p.columns.in) && uint32_t(y) < uint32_t(p.rows.in);
      const T* const from = image + (inside[i] ? y * int(p.x_at.row) + column * 3 : 0);
#pragma unroll
      for (int k = 0; k < 3; ++k) words[i][k] = *reinterpret_cast<const uint32_t*>(from + k * 2);
    }
  }
  // Two pixels are three words, and four words with what is missing.
  TC_DEVICE void store(typename Shared::Tile& tile, const Params& p, int half) const {
    const bool lead = first_tap_place(p);
    if (int(threadIdx.x) >= kRowsAtOnce * kStemPairs) return;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int r = row(half, i);
      if (r >= Shared::rows) return;
      PixelPair two = {words[i][0], words[i][1] & 0xffffu, words[i][1] >> 16 | words[i][2] << 16,
                       words[i][2] >> 16};
      if (!inside[i]) two = {};
      tile.whole[r][pair()] = two;
      tile.halves[r][pair()] =
          lead ? PixelPair{0, 0, two[2], two[3]} : PixelPair{two[0], two[1], 0, 0};
    }
  }
};

// The sums of all filters and 8 rows of 8 outputs.
template <class T, Config C>
struct StemSums {
  using Shared = DirectWgmmaShared<T, C>;
  static constexpr Wgmma op{.n = kDirectRows * 8, .a = kWgmmaType<T>, .b = kWgmmaType<T>};
  static_assert(op.n == kGroupRows);
  float at[op.n / 2];

  // Starts the products; `half` of the columns.
  TC_DEVICE void add_windows(const typename Shared::Tile& tile, const StemWeights<T, C>& weights,
                             const float (&bias)[kDirectFilters], const Params& p, int half) {
    const int filter = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int i = 0; i < op.n / 2; ++i) at[i] = bias[filter + i / 2 % 2 * 8];
    const int lead = first_tap_place(p);
    const int corner = (kStemMargin - int(p.columns.before) - lead) / 2 + half * 8;
    const PixelPair* const whole = &tile.whole[0][corner + lead];
    const PixelPair* const last = &tile.halves[0][corner + (lead ? 0 : kWholePairs<C>)];
    const auto descriptor = [&](const PixelPair* first, uint32_t to_second) {
      return wgmma_descriptor({.address = ptx::cvta_to_shared(first),
                               .leading = to_second,
                               .stride = 2 * sizeof(tile.whole[0])});
    };
    constexpr int kLast = (kRowSteps<C> - 1) * 2;
    const uint64_t steps = descriptor(whole, sizeof(PixelPair));
    const uint64_t last_step =
        descriptor(whole + kLast, ptx::cvta_to_shared(last) - ptx::cvta_to_shared(whole + kLast));
    ptx::wgmma_fence();
#pragma unroll
    for (int r = 0; r < C.taps; ++r) {
#pragma unroll
      for (int s = 0; s < kRowSteps<C>; ++s)
        ptx::wgmma_mma_async<op>(at, weights.at[r][s],
                                 (s + 1 < kRowSteps<C> ? steps + s * 2 : last_step) +
                                     r * sizeof(tile.whole[0]) / kVectorBytes,
                                 true);
    }
    ptx::wgmma_commit_group();
  }
  TC_DEVICE void land() {
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_landed(at);
  }
  // Activates, rounds and turns over.
  TC_DEVICE void put(RoundedOutputs<T>& slab) const {
    const uint32_t lane = threadIdx.x % 32, chunk = threadIdx.x / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (uint32_t j = 0; j < kDirectRows; j += 2) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words[i] = pack_pair(activate<C.activation, T>(at[j * 4 + i * 2]),
                             activate<C.activation, T>(at[j * 4 + i * 2 + 1]), T{});
      ptx::stmatrix_x4_trans(&slab.chunk((j + lane / 16) * 8 + lane % 8, chunk), words);
    }
  }
};

// Stores 8 rows of 8 outputs, 8 filters a thread.
template <class T, Config C>
TC_DEVICE void store_outputs(RoundedOutputs<T>& slab, const Params& p, const DirectTile& tile,
                             int half, int first_filter) {
  constexpr int kLines = C.threads / 8, kStores = kGroupRows / kLines;
  const uint32_t line = threadIdx.x / 8, chunk = threadIdx.x % 8;
  const int row = tile.row + int(line / 8), column = tile.column + half * 8 + int(line % 8);
  if (column >= int(p.columns.out) || first_filter + chunk * 8 >= p.filters) return;
  T* const out =
      static_cast<T*>(p.out) + p.out_at.offset(tile.sample, row, column, first_filter + chunk * 8);
#pragma unroll
  for (int i = 0; i < kStores; ++i) {
    if (row + i * (kLines / 8) < int(p.rows.out))
      slab.chunk(line + i * kLines, chunk).store(out + i * (kLines / 8) * p.out_at.row);
  }
}

// The state of a block while it goes over tiles.
template <class T, Config C>
struct StemBlock {
  DirectWgmmaShared<T, C>& shared;
  const Params& p;
  int first_filter;
  StemWeights<T, C> weights;
  PairCopier<T, C> pairs;

  // The first tile.
  TC_DEVICE void begin(const DirectTile& tile) {
    PairCopier<T, C> others;
    pairs.load(p, tile, 0);
    others.load(p, tile, 1);
    weights.bring(shared, p, first_filter);
    pairs.store(shared.tiles[0], p, 0);
    others.store(shared.tiles[0], p, 1);
    ptx::fence_proxy_async();  // wgmma reads the pixels through it
    __syncthreads();
  }
  // Half of the columns of a tile, and half of the pixels of the next one, which go where nobody
  // reads since the tile before.
  TC_DEVICE void add_half(const DirectTile& tile, const DirectTile& next, int turn, int half) {
    pairs.load(p, next, half);
    StemSums<T, C> sums;
    sums.add_windows(shared.tiles[turn], weights, shared.bias, p, half);
    pairs.store(shared.tiles[turn ^ 1], p, half);
    ptx::fence_proxy_async();
    sums.land();
    sums.put(shared.slabs[half]);
    __syncthreads();
    store_outputs<T, C>(shared.slabs[half], p, tile, half, first_filter);
  }
};

struct DirectWgmma {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    static_assert(C.threads == kWarpgroup && C.taps % 4 == 3 && kDirectColumns == 16);
    auto& shared = dynamic_shared<DirectWgmmaShared<T, C>>();
    static_assert(sizeof(shared) <= direct_wgmma_shared_bytes(C));
    const uint32_t parts = div_ceil(uint32_t(p.filters), uint32_t(kDirectFilters));
    const uint32_t tiles = uint32_t(p.batch) *
                           div_ceil(uint32_t(p.rows.out), uint32_t(kDirectRows)) *
                           div_ceil(uint32_t(p.columns.out), uint32_t(kDirectColumns));
    const uint32_t step = gridDim.x / parts;
    uint32_t i = blockIdx.x / parts;
    if (i >= tiles) return;
    StemBlock<T, C> block{shared, p, int(blockIdx.x % parts) * kDirectFilters};
    DirectTile tile(p, i);
    block.begin(tile);
    for (int turn = 0; i < tiles; turn ^= 1) {
      i += step;
      const DirectTile next(p, i < tiles ? i : 0);
#pragma unroll 1
      for (int half = 0; half < 2; ++half) block.add_half(tile, next, turn, half);
      tile = next;
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
