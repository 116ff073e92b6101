// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/gated_activation/params.h"

namespace tensorcraft::kernel::gated_activation {

// One element of the output, before it is rounded to T.
template <class T, Activation gate>
TC_DEVICE float gated(float x, float up) {
  return activate<gate, T>(x) * up;
}

}  // namespace tensorcraft::kernel::gated_activation
