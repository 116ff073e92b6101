// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/key_tiles.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/row_unit.cuh"

// The queries of an AttentionPart (device/attention_part.cuh) in shared memory, as the lanes'
// registers of mma's A: lane l has elements of rows l / 4 and l / 4 + 8 of each 16.
namespace tensorcraft {

// Starts the block's copies. row_of(r): address of row r's query, null if there is none. Behind
// `length` elements it is 0.
template <class T, PartShape S, class RowOf>
TC_DEVICE void copy_queries(QueryRows<S>& rows, const RowOf& row_of, int length = S.head_dim) {
  const int lane = int(threadIdx.x % kWarpSize), warp = int(threadIdx.x / kWarpSize);
  for (int tile = 0; tile < S.row_tiles; ++tile) {
    const int row = kTileRows * tile + lane / 4;
    const T* const query[2] = {row_of(row), row_of(row + 8)};
    for (int step = warp; step < S.head_dim / 16; step += S.warps) {
      const int at = 32 * (step / 2) + 8 * (lane % 4) + 4 * (step % 2);
      for (int half = 0; half < 2; ++half) {
        const bool is_there = query[half] && at < length;
        for (int pair = 0; pair < 2; ++pair)
          ptx::cp_async_ca_4(&rows[tile][step][lane][2 * pair + half],
                             is_there ? query[half] + at + 2 * pair : nullptr, is_there ? 4 : 0);
      }
    }
  }
}

// Makes bfloat16 queries f16, each row in its unit, and gives the inverses for the lane's rows. All
// threads of the block call.
template <PartShape S>
TC_DEVICE void convert_queries(QueryRows<S>& rows, float (&inverses)[S.row_tiles][2]) {
  const int lane = int(threadIdx.x % kWarpSize), warp = int(threadIdx.x / kWarpSize);
  float factors[S.row_tiles][2];
  for (int tile = 0; tile < S.row_tiles; ++tile)
    for (int half = 0; half < 2; ++half) {
      uint32_t largest = 0;  // a magnitude, as bits of bf16
      for (const auto& step : rows[tile])
        for (int pair = 0; pair < 2; ++pair)
          largest = largest_bits(largest, step[lane][2 * pair + half]);
      for (int other = 1; other < 4; other *= 2) {
        const uint32_t x = __shfl_xor_sync(kFullWarp, largest, other);
        largest = x > largest ? x : largest;
      }
      const RowUnit unit(largest);
      factors[tile][half] = unit.factor;
      inverses[tile][half] = unit.inverse;
    }
  __syncthreads();
  for (int tile = 0; tile < S.row_tiles; ++tile)
    for (int step = warp; step < S.head_dim / 16; step += S.warps) {
      Vec4<uint32_t>& words = rows[tile][step][lane];
      for (int i = 0; i < 4; ++i) words[i] = in_unit(words[i], factors[tile][i % 2]);
    }
  __syncthreads();
}

}  // namespace tensorcraft
