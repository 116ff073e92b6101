// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Which index of a matrix each index of a tile is, from the tile's first on.
namespace tensorcraft {

struct InOrder {
  TC_HOST_DEVICE static constexpr int place(int i) { return i; }
  TC_HOST_DEVICE static constexpr bool is_second(int) { return false; }
};

// A tile of `kSize`: as many from the matrix's first half and, a jump later, from its second.
template <int kSize>
struct TwoHalves {
  static_assert(kSize % 2 == 0);
  TC_HOST_DEVICE static constexpr int place(int i) { return i % (kSize / 2); }
  TC_HOST_DEVICE static constexpr bool is_second(int i) { return i >= kSize / 2; }
};

}  // namespace tensorcraft
