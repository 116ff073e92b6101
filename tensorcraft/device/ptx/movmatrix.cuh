// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

namespace tensorcraft::ptx {

// movmatrix.sync.aligned.m8n8.trans.b16: an 8 x 8 matrix of 16-bit elements, one register a lane as
// device/ptx/ldmatrix.cuh describes it, transposed.
TC_DEVICE uint32_t movmatrix_trans(uint32_t x) {
#if TC_PTX
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
#else
  return simt::movmatrix(x);
#endif
}

}  // namespace tensorcraft::ptx
