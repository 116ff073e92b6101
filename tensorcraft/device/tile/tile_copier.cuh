// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/tile/column_order.h"
#include "tensorcraft/device/vec.cuh"

namespace tensorcraft {

// A thread's share of the cp.async copies of one operand's tiles, SwizzledTile or one like it.
// kWhole: lines are a multiple of 16 bytes long, else the last chunk of a line may be partly
// inside the matrix. `Order` is that of the lines, or along them if kAcross.
template <class T, class Tile, int Threads, bool kWhole, class Order = InOrder,
          bool kAcross = false>
struct TileCopier {
  static constexpr int line_step = Threads / Tile::per_line;  // from one chunk of a thread on
  static constexpr int count = Tile::lines / line_step;
  static_assert(Threads % Tile::per_line == 0 && count * line_step == Tile::lines);

  // Are the thread's lines of one half apart from those of the other?
  static constexpr bool two_halves = Order::is_second(Tile::lines - 1) && !kAcross;
  static_assert(!two_halves || !Order::is_second(line_step - 1));

  const T* source;  // of the thread's first chunk
  int64_t stride, jump;
  int line, n;  // the place of that chunk in the tile

  // `half_jump`: elements from a place of the first half to that of the second.
  TC_DEVICE TileCopier(const T* from, int64_t line_stride, int64_t half_jump = 0)
      : stride(line_stride),
        jump(half_jump),
        line(threadIdx.x / Tile::per_line),
        n(threadIdx.x % Tile::per_line) {
    source = from + line * stride + along();
    if (kAcross && Order::is_second(n * kVectorSize<T>)) source += half_jump;
  }
  // The place of the thread's chunks along a line of the matrix.
  TC_DEVICE int along() const {
    return kAcross ? Order::place(n * kVectorSize<T>) : n * kVectorSize<T>;
  }

  // Starts copying the tile, of which `lines` x `length` are inside the matrix; the rest becomes 0.
  TC_DEVICE void copy(Tile& tile, int lines, int length) const {
    const int left = (length - along()) * int(sizeof(T));
    const int bytes = left <= 0 ? 0 : kWhole || left >= kVectorBytes ? kVectorBytes : left;
    const T* from = source;
#pragma unroll
    for (int i = 0; i < count; ++i, from += line_step * stride) {
      const int at = line + i * line_step;
      if constexpr (two_halves) {
        if (i > 0 && Order::is_second(i * line_step) && !Order::is_second((i - 1) * line_step))
          from = source + jump;
        ptx::cp_async_cg_16(&tile.at[Tile::place(at, n)], from,
                            line + Order::place(i * line_step) < lines ? bytes : 0);
      } else {
        ptx::cp_async_cg_16(&tile.at[Tile::place(at, n)], from, at < lines ? bytes : 0);
      }
    }
  }
};

}  // namespace tensorcraft
