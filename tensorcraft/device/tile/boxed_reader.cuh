// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/tile/boxed_tile.cuh"

namespace tensorcraft {

// A lane's chunks of a warp's part of a BoxedTile for ldmatrix, as load_fragments() has them.
// Blocks of 16 x kMmaDepth are 16 lines or 2 chunks apart: the first distance is a constant past a
// lane's place, the second changes bits of it, so that few registers hold all addresses.
// kSecondAlongK: see load_fragments().
template <class T, class Tile, bool kAlongK, bool kSecondAlongK>
struct BoxedReader {
  static_assert(sizeof(T) == 2);
  int first;

  TC_DEVICE explicit BoxedReader(int i) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
    const int along_i = kSecondAlongK ? matrix / 2 : matrix % 2;
    const int along_k = kSecondAlongK ? matrix % 2 : matrix / 2;
    first = kAlongK ? Tile::place(i + along_i * 8 + lane % 8, along_k)
                    : Tile::place(along_k * 8 + lane % 8, i / 8 + along_i);
  }

  // kHalves: the part is of two boxes of the tile, as much of each, `half_lines` of boxes apart.
  template <bool kHalves = false, int kBlocks>
  TC_DEVICE void load(uint32_t (&to)[kBlocks][4], const Tile& tile, int step,
                      int half_lines = 0) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(tile.at);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const bool is_second = kHalves && block >= kBlocks / 2;
      const int i = is_second ? block - kBlocks / 2 : block;
      const int lines = (kAlongK ? i : step) * 16 + (is_second ? half_lines : 0);
      const int chunks = (kAlongK ? step : i) * 2;
      const int at = (first ^ chunks * kVectorBytes) + lines * kBoxChunks * kVectorBytes;
      if constexpr (kAlongK)
        ptx::ldmatrix_x4(to[block], bytes + at);
      else
        ptx::ldmatrix_x4_trans(to[block], bytes + at);
    }
  }
};

}  // namespace tensorcraft
