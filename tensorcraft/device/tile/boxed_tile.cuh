// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/vec.cuh"

// Tiles that the copy engine (TMA) writes.
namespace tensorcraft {

inline constexpr int kBoxChunks = 8;  // of 16 bytes: 128, the widest line that the engine swizzles

// Boxes as the copy engine writes them: lines of 128 bytes whose chunk n is at n ^ line % 8. If
// lines of the tile are longer, they go on in the next box.
template <class T, int Lines, int Length>
struct BoxedTile {
  static constexpr int length = Length;
  static_assert(Lines % 8 == 0 && Length % (kBoxChunks * kVectorSize<T>) == 0);
  Vec4<uint32_t> at[Lines * Length / kVectorSize<T>];

  // Bytes from the start of the tile.
  TC_DEVICE static int place(int line, int n) {
    const int in_boxes = n / kBoxChunks * Lines + line;
    return (in_boxes * kBoxChunks + (n % kBoxChunks ^ line % 8)) * kVectorBytes;
  }
};

// Starts copying `Size` of a tile's rows or columns from number i on, with one step of k: boxes of
// `Lines` lines, into this block, or if kShared into the blocks of the cluster in `mask`.
template <class T, bool kAlongK, bool kShared, int Size, int Lines>
TC_DEVICE void copy_boxes(Vec4<uint32_t>* to, const TensorMap* map, int i, int k, int batch,
                          uint64_t* full, uint16_t mask) {
  constexpr int width = kAlongK ? Lines : kBoxChunks * kVectorSize<T>;
  static_assert(Size % width == 0);
#pragma unroll
  for (int n = 0; n < Size; n += width, to += Lines * kBoxChunks) {
    const int32_t at[3] = {kAlongK ? k : i + n, kAlongK ? i + n : k, batch};
    if constexpr (kShared)
      ptx::tma_load_multicast(to, map, at, full, mask);
    else
      ptx::tma_load(to, map, at, full);
  }
}

}  // namespace tensorcraft
