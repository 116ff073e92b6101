// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/device/attention/value_tiles.cuh"

// P V of a consumer: the weights of a tile as operands, and the sums of all tiles.
namespace tensorcraft::kernel::attention_tiles {

// 16 bits. A thread's scores of 16 keys, packed in pairs, are the left operand of the same keys.
template <class T, Config C>
struct WeightedSums {
  static constexpr float kLog2OfLargest = 0.f;  // of a weight, as far as its row has one
  static constexpr int dim = values_of_consumer(C);
  WarpgroupSums<kGroupRows, dim, float, values_are_keys(C) ? 128 : 256> sums;
  uint32_t weights[C.block_n / 16][1][4];

  TC_DEVICE void clear() { sums.clear(); }
  TC_DEVICE void pack(const float (&score)[C.block_n / 2]) {
#pragma unroll
    for (int j = 0; j < C.block_n / 16; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float* s = score + 8 * j + 2 * e;
        weights[j][0][e] = pack_pair(s[0], s[1], T{});
      }
    }
  }
  // Starts adding the product of the weights and a tile, or makes it the sums.
  template <class Tile>
  TC_DEVICE void multiply(const Tile& values, bool adds) {
    sums.template add_registers<T, false>(weights, values, adds);
  }
  // Starts it with weights in shared memory and the columns from `first` on.
  template <class Weights, class Tile>
  TC_DEVICE void multiply(const Weights& in_memory, const Tile& values, int first, bool adds) {
    sums.template add_tiles<T, C.block_n, true, false>(in_memory, 0, values, adds,
                                                       WgmmaTile<T, Tile, false>::offset(first, 0));
  }
  // No product is under way then. `was_multiplied`: that of this tile was.
  template <class Tile>
  TC_DEVICE void land(const Tile&, bool /*was_multiplied*/) {
    sums.land();
    keep_weights();
  }
  // What was summed is to be multiplied by `keep`, for each of a thread's two rows.
  TC_DEVICE void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int c = 0; c < dim / 2; ++c) sums.of_first_rows(c) *= keep[c / 2 % 2];
  }
  TC_DEVICE void set(int i, float x) { sums.of_first_rows(i) = x; }
  TC_DEVICE const float* at(int i) const { return &sums.of_first_rows(i); }

 private:
  TC_DEVICE void keep_weights() {
#pragma unroll
    for (int j = 0; j < C.block_n / 16; ++j) ptx::wgmma_landed(weights[j][0]);
  }
};

// Four floats as the bytes of a word.
TC_DEVICE uint32_t pack_quad(float x0, float x1, float x2, float x3) {
  return uint32_t(ptx::cvt_rn_satfinite_e4m3x2_f32(x3, x2)) << 16 |
         ptx::cvt_rn_satfinite_e4m3x2_f32(x1, x0);
}

// float8. The tensor cores keep 14 bits of such sums and cut the rest off, so they add up one tile,
// and threads add that to the sums in float32: sum = sum * keep + part is an instruction, as the
// product by `keep` alone would be. If the registers do not hold a part of all columns there are
// several, one after another.
template <Config C>
struct WeightedSums<e4m3, C> {
  // A weight of e4m3 is 2^-9 to 448: with 2^8 for the largest one, those from 2^-14 of it on have
  // all bits.
  static constexpr float kLog2OfLargest = 8.f;
  static constexpr int dim = dim_of_values(C);
  static constexpr int columns = dim > 128 || C.options > 0 ? 64 : dim;
  using Tiles = ValueTiles<C.head_dim, C.block_n>;
  using Tile = typename Tiles::Tile;
  float sums[dim / 2];
  float kept[2];  // what the sums are to be multiplied by
  WarpgroupSums<kGroupRows, columns> part;
  uint32_t weights[C.block_n / 32][1][4];

  TC_DEVICE void clear() {
    kept[0] = kept[1] = 0.f;
#pragma unroll
    for (int i = 0; i < dim / 2; ++i) sums[i] = 0.f;
  }
  TC_DEVICE void pack(const float (&score)[C.block_n / 2]) {
#pragma unroll
    for (int j = 0; j < C.block_n / 32; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {  // two rows of 16 keys, and of the next 16
        const float* s = score + 16 * j + e / 2 * 8 + e % 2 * 2;
        weights[j][0][e] = pack_quad(s[0], s[1], s[4], s[5]);
      }
    }
  }
  TC_DEVICE void multiply(const Tile& values, bool /*adds*/) { start<0>(values); }
  TC_DEVICE void land(const Tile& values, bool was_multiplied) {
    land_part();
    if (was_multiplied) add_parts<0>(values);
  }
  TC_DEVICE void rescale(const float (&keep)[2]) {
    kept[0] = keep[0];
    kept[1] = keep[1];
  }
  TC_DEVICE const float* at(int i) const { return sums + i; }

 private:
  // Columns from `column` on.
  template <int column>
  TC_DEVICE void start(const Tile& values) {
    constexpr int half = column / Tiles::lines;
    part.template add_registers<e4m3, true>(
        weights, values, false,
        WgmmaTile<e4m3, Tile, true>::offset(column % Tiles::lines, half * C.block_n / 32));
  }
  TC_DEVICE void land_part() {
    part.land();
#pragma unroll
    for (int j = 0; j < C.block_n / 32; ++j) ptx::wgmma_landed(weights[j][0]);
  }
  // The part of columns from `column` on has landed.
  template <int column>
  TC_DEVICE void add_parts(const Tile& values) {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) {
      float& sum = sums[column / 2 + i];
      sum = fmaf(sum, kept[i / 2 % 2], part.at[0][0][i]);
    }
    if constexpr (column + columns < dim) {
      start<column + columns>(values);
      land_part();
      add_parts<column + columns>(values);
    }
  }
};

}  // namespace tensorcraft::kernel::attention_tiles
