// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// Tells the copy engine (TMA) how a tensor lies. A kernel gets it by value in its Params and
// passes its address on, never a copy. The CUDA driver fills it (cuda/tensor_map.hpp), for the
// emulator simt/tensor_map.hpp does.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
static_assert(sizeof(TensorMap) == 128);

// The lines of one box that brings `size` rows or columns of an operand: `k` of them if the unit
// stride does not run along k, else as many as one box takes of equal ones.
TC_HOST_DEVICE constexpr int box_lines(bool along_k, int size, int k) {
  constexpr int kMost = 256;
  return along_k ? size / div_ceil(size, kMost) : k;
}

}  // namespace tensorcraft
