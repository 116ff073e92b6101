// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

// For products with few rows of A, or with `swap` few columns of B: which part a block computes,
// and how parts are added.
namespace tensorcraft::kernel::gemm {

// A block's outputs, and its place among the blocks that share them and have a part of k each.
struct FewRowsTile {
  int64_t output;  // the first
  uint32_t batch;
  int rank;
};
template <Config C>
TC_DEVICE FewRowsTile few_rows_tile(const Params& p) {
  const int64_t outputs = C.swap ? p.m : p.n;
  const uint32_t tiles = uint32_t(div_ceil(outputs, tile_columns(C)));
  const uint32_t number = blockIdx.x / C.split;
  return {.output = int64_t(number % tiles) * tile_columns(C),
          .batch = number / tiles,
          .rank = int(blockIdx.x % C.split)};
}

// A block's sums over its parts of k, as rows of D: `kParts` to add. A gated tile has two sides,
// sums of the left half of B and then as many of the right.
template <Config C, int kParts>
struct SplitSums {
  static constexpr int rows = C.swap ? C.block_n : C.block_m;
  static constexpr int cols = C.swap ? C.block_m : C.block_n;
  alignas(kVectorBytes) float at[kParts][rows][cols];

  static constexpr int sides = C.gated ? 2 : 1, stored = cols / sides;
  // The neighbours that a thread stores at once.
  static constexpr int width = stored % 4 == 0 ? 4 : stored;
  static constexpr int per_row = stored / width, groups = rows * per_row;
  using Group = AlignedVector<float, width>;

  // The sum of token t and output i.
  TC_DEVICE float& sum(int part, int t, int i) { return C.swap ? at[part][i][t] : at[part][t][i]; }
  static TC_DEVICE int col_of(int side, int g) { return side * stored + g % per_row * width; }
  TC_DEVICE Group group(int part, int side, int g) const {
    return load_vector<width>(&at[part][g / per_row][col_of(side, g)]);
  }
  // The sum over the parts, in their order.
  TC_DEVICE Group total(int side, int g) const {
    Group sum = group(0, side, g);
    for (int part = 1; part < kParts; ++part) add(sum, group(part, side, g));
    return sum;
  }
  TC_DEVICE static void add(Group& sum, const Group& x) {
    for (int i = 0; i < width; ++i) sum[i] += x[i];
  }

  // Stores group g of D from (row, col) on, of which total_of(side) are the sums.
  template <class E, class TotalOf>
  TC_DEVICE static void store_group(const E& epilogue, int64_t row, int64_t col, int g,
                                    const TotalOf& total_of) {
    row += g / per_row;
    col += g % per_row * width;
    if constexpr (C.gated)
      epilogue.store(total_of(0).values, total_of(1).values, row, col);
    else
      epilogue.store(total_of(0).values, row, col);
  }

  // Stores D from (row, col) on: the sum over the parts and over the blocks of the cluster, in the
  // order of their ranks, of which each stores a share. All threads of the cluster call, when they
  // have written their sums.
  template <class T, class Out>
  TC_DEVICE void store(const Epilogue<T, Out, C>& epilogue, int64_t row, int64_t col) {
    __syncthreads();
    if constexpr (C.split == 1) {
#pragma unroll 1
      for (int g = threadIdx.x; g < groups; g += C.threads)
        store_group(epilogue, row, col, g, [&](int side) { return total(side, g); });
    } else {
      if constexpr (kParts > 1) {
        for (int g = threadIdx.x; g < groups; g += C.threads)
          for (int side = 0; side < sides; ++side)
            store_vector(&at[0][g / per_row][col_of(side, g)], total(side, g));
      }
      ptx::cluster_sync();
      constexpr int share = div_ceil(groups, C.split);
      const int first = int(ptx::cluster_ctarank()) * share;
      const int end = groups - first < share ? groups : first + share;
#pragma unroll 1
      for (int g = first + int(threadIdx.x); g < end; g += C.threads) {
        store_group(epilogue, row, col, g, [&](int side) {
          Group parts[C.split];
#pragma unroll
          for (int rank = 0; rank < C.split; ++rank)
            parts[rank] = ptx::mapa(this, rank)->group(0, side, g);
#pragma unroll
          for (int rank = 1; rank < C.split; ++rank) add(parts[0], parts[rank]);
          return parts[0];
        });
      }
      ptx::cluster_arrive_relaxed();  // the sums of the others have come
      ptx::cluster_wait();            // and this block may end
    }
  }
};

}  // namespace tensorcraft::kernel::gemm
