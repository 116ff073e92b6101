// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/vec.cuh"

namespace tensorcraft {

// A thread's share of the cp.async copies of one operand's tiles, SwizzledTile or one like it.
// kWhole: lines are a multiple of 16 bytes long, else the last chunk of a line may be partly
// inside the matrix.
template <class T, class Tile, int Threads, bool kWhole>
struct TileCopier {
  static constexpr int line_step = Threads / Tile::per_line;  // from one chunk of a thread on
  static constexpr int count = Tile::lines / line_step;
  static_assert(Threads % Tile::per_line == 0 && count * line_step == Tile::lines);

  const T* source;  // of the thread's first chunk
  int64_t stride;
  int line, n;  // the place of that chunk in the tile

  TC_DEVICE TileCopier(const T* from, int64_t line_stride)
      : stride(line_stride), line(threadIdx.x / Tile::per_line), n(threadIdx.x % Tile::per_line) {
    source = from + line * stride + n * kVectorSize<T>;
  }

  // Starts copying the tile, of which `lines` x `length` are inside the matrix; the rest becomes 0.
  TC_DEVICE void copy(Tile& tile, int lines, int length) const {
    const int left = (length - n * kVectorSize<T>)*int(sizeof(T));
    const int bytes = left <= 0 ? 0 : kWhole || left >= kVectorBytes ? kVectorBytes : left;
    const T* from = source;
#pragma unroll
    for (int i = 0; i < count; ++i, from += line_step * stride) {
      const int at = line + i * line_step;
      ptx::cp_async_cg_16(&tile.at[Tile::place(at, n)], from, at < lines ? bytes : 0);
    }
  }
};

}  // namespace tensorcraft
