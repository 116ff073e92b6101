// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// What the copy engine (TMA) needs to know of a tensor. A kernel gets it by value in its Params and
// passes its address on, never a copy. The CUDA driver fills it (cuda/tensor_map.hpp), for the SIMT
// device simt/tensor_map.hpp does.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
static_assert(sizeof(TensorMap) == 128);

}  // namespace tensorcraft
