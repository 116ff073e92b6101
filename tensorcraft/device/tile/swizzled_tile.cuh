// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/vec.cuh"

namespace tensorcraft {

// A tile without padding whose chunks of 16 bytes change places: chunk n of a line is at
// n ^ exchange(line). For any 8 lines from a multiple of 8 the 8 chunks of one n are in 8 bank
// groups. The lowest bits of the line count most, so that 4 lines of a pair of chunks are too: that
// is what a transposed float operand reads.
template <class T, int Lines, int Length>
struct SwizzledTile {
  static constexpr int lines = Lines, per_line = Length / kVectorSize<T>;
  static constexpr int span = per_line < 8 ? per_line : 8;  // chunks that are exchanged
  static_assert(per_line % span == 0 && (span & (span - 1)) == 0);
  Vec4<uint32_t> at[Lines * per_line];

  TC_DEVICE static int place(int line, int n) {
    // 8 / span lines fill the banks once; lines beyond them must differ.
    const int turn = line / (8 / span);
    const int exchange = span == 8 ? turn % 4 * 2 + turn / 4 % 2 : turn % span;
    const int within = n % span;
    return line * per_line + (n - within) + (within ^ exchange);
  }
  TC_DEVICE const T* chunk(int line, int n) const {
    return reinterpret_cast<const T*>(&at[place(line, n)]);
  }
};

}  // namespace tensorcraft
