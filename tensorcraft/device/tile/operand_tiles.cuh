// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// The operands of a block in one step: m x k elements of A by k x n of B, and whether the unit
// stride of each runs along k.
struct StepShape {
  int m, n, k;
  bool a_along_k, b_along_k;
};

// One stage of shared memory: a tile of each operand, in the order of global memory. A tile of
// `Lines` lines along the unit stride, `Length` elements long, is a Tile<T, Lines, Length>.
template <template <class, int, int> class Tile, class T, StepShape S>
struct OperandTiles {
  using Element = T;
  static constexpr StepShape shape = S;
  static constexpr bool a_along_k = S.a_along_k, b_along_k = S.b_along_k;
  using A = Tile<T, a_along_k ? S.m : S.k, a_along_k ? S.k : S.m>;
  using B = Tile<T, b_along_k ? S.n : S.k, b_along_k ? S.k : S.n>;
  A a;
  B b;
};

}  // namespace tensorcraft
