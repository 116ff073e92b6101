// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention/params.h"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/tile/boxed_tile.cuh"

// wgmma reads bytes along its sums alone, so values of float8 are transposed first: a kernel of its
// own writes them into the workspace as the tiles that the ring takes.
namespace tensorcraft::kernel::attention_tiles {

// block_n keys of a head. A line has 128 bytes: block_n keys of one column, or of the columns c and
// c + 128 if head_dim is 256, whose tiles have 64 keys. Chunks are where a BoxedTile has them.
template <int head_dim, int block_n>
struct ValueTiles {
  static constexpr int lines = value_lines(head_dim), halves = head_dim / lines;
  static_assert(head_dim % lines == 0 && halves * block_n == kBoxChunks * kVectorBytes);
  using Tile = BoxedTile<e4m3, lines, halves * block_n>;

  // The tile from key tile * block_n on.
  TC_DEVICE static unsigned char* at(const Params& p, int batch, int head, int tile) {
    const int tiles = div_ceil(p.seq_k, block_n);
    const int64_t number = (int64_t(batch) * (p.heads / p.group) + head) * tiles + tile;
    return p.v_tiles + number * int64_t(sizeof(Tile));
  }
};

}  // namespace tensorcraft::kernel::attention_tiles
