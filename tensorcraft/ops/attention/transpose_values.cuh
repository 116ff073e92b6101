// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/device/attention/value_tiles.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

// A thread has sums of the keys 2 t, 2 t + 1, 8 + 2 t, 9 + 2 t of 16, t = lane % 4, but elements
// 4 t to 4 t + 3 of the left operand. A product does not ask which key stands where, so values
// stand in the order of the weights: this is the key at a place of 16.
TC_HOST_DEVICE constexpr int key_at_place(int place) {
  return place % 4 / 2 * 8 + place / 4 * 2 + place % 2;
}

// Bytes e of four words become word e.
TC_DEVICE void transpose_bytes(uint32_t (&w)[4]) {
  constexpr uint32_t kEven = 0x00ff00ffu, kLow = 0x0000ffffu;
  uint32_t even[2], odd[2];  // bytes 0 and 2, or 1 and 3, of two words
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    even[i] = (w[2 * i] & kEven) | (w[2 * i + 1] & kEven) << 8;
    odd[i] = (w[2 * i] >> 8 & kEven) | (w[2 * i + 1] & ~kEven);
  }
  w[0] = (even[0] & kLow) | even[1] << 16;
  w[1] = (odd[0] & kLow) | odd[1] << 16;
  w[2] = even[0] >> 16 | (even[1] & ~kLow);
  w[3] = odd[0] >> 16 | (odd[1] & ~kLow);
}

// The first step of rungs on wgmma: a block makes a tile. Keys that are not in use become 0, which
// a weight of 0 may meet, and so do values that a row lacks.
struct TransposeValues {
  template <class T, TransposeConfig C>
  TC_DEVICE static void run(const Params& p) {
    static_assert(sizeof(T) == 1);
    using Tiles = ValueTiles<C.head_dim, C.block_n>;
    constexpr int kChunks = kBoxChunks, kKeys = kVectorBytes;  // keys of a chunk
    const int tiles = div_ceil(p.seq_k, C.block_n), heads = p.heads / p.group;
    const int tile = int(blockIdx.x) % tiles, of_all = int(blockIdx.x) / tiles;
    const int head = of_all % heads, batch = of_all / heads;
    const int keys = keys_in_use(p, batch, p.seq_k);
    const auto* v =
        static_cast<const T*>(p.v) + batch * p.v_strides.batch + head * p.v_strides.head;
    unsigned char* to = Tiles::at(p, batch, head, tile);
    // Four columns of 16 keys, a chunk of four lines. Eight threads read 32 neighbours of a key,
    // and four write 64 neighbours of a line.
    for (int i = threadIdx.x; i < Tiles::lines / 4 * kChunks; i += C.threads) {
      const int chunk = i / 8 % 4 + i / Tiles::lines * 4;
      const int line = (i % 8 + i / 32 % (Tiles::lines / 32) * 8) * 4;
      const int first = tile * C.block_n + chunk % (C.block_n / kKeys) * kKeys;
      const int value = line + chunk / (C.block_n / kKeys) * Tiles::lines;
      const T* from = v + value;
      uint32_t words[4][4];
#pragma unroll
      for (int n = 0; n < kKeys; ++n) {
        const int key = first + key_at_place(n);
        words[n / 4][n % 4] = key < keys && value < p.v_dim
                                  ? *reinterpret_cast<const uint32_t*>(from + key * p.v_strides.row)
                                  : 0u;
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) transpose_bytes(words[n]);
#pragma unroll
      for (int column = 0; column < 4; ++column)
        *reinterpret_cast<Vec4<uint32_t>*>(to + Tiles::Tile::place(line + column, chunk)) = {
            {words[0][column], words[1][column], words[2][column], words[3][column]}};
    }
  }
};

}  // namespace tensorcraft::kernel::attention
