// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"

// Stores matrices as device/ptx/ldmatrix.cuh describes them.
namespace tensorcraft::ptx {

// stmatrix.sync.aligned.m8n8.x1 (sm_90)
TC_DEVICE void stmatrix_x1(void* row, const uint32_t (&from)[1]) {
#if TC_PTX
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(cvta_to_shared(row)),
               "r"(from[0])
               : "memory");
#else
  simt::stmatrix_x1(row, from, false);
#endif
}

// stmatrix.sync.aligned.m8n8.x1.trans (sm_90)
TC_DEVICE void stmatrix_x1_trans(void* row, const uint32_t (&from)[1]) {
#if TC_PTX
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(cvta_to_shared(row)),
      "r"(from[0])
      : "memory");
#else
  simt::stmatrix_x1(row, from, true);
#endif
}

// stmatrix.sync.aligned.m8n8.x2 (sm_90)
TC_DEVICE void stmatrix_x2(void* row, const uint32_t (&from)[2]) {
#if TC_PTX
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(cvta_to_shared(row)),
      "r"(from[0]), "r"(from[1])
      : "memory");
#else
  simt::stmatrix_x2(row, from, false);
#endif
}

// stmatrix.sync.aligned.m8n8.x2.trans (sm_90)
TC_DEVICE void stmatrix_x2_trans(void* row, const uint32_t (&from)[2]) {
#if TC_PTX
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(cvta_to_shared(row)),
      "r"(from[0]), "r"(from[1])
      : "memory");
#else
  simt::stmatrix_x2(row, from, true);
#endif
}

// stmatrix.sync.aligned.m8n8.x4 (sm_90)
TC_DEVICE void stmatrix_x4(void* row, const uint32_t (&from)[4]) {
#if TC_PTX
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(cvta_to_shared(row)),
      "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
      : "memory");
#else
  simt::stmatrix_x4(row, from, false);
#endif
}

// stmatrix.sync.aligned.m8n8.x4.trans (sm_90)
TC_DEVICE void stmatrix_x4_trans(void* row, const uint32_t (&from)[4]) {
#if TC_PTX
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   cvta_to_shared(row)),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
#else
  simt::stmatrix_x4(row, from, true);
#endif
}

}  // namespace tensorcraft::ptx
