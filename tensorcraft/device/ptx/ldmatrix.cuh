// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// A warp loads four 8 x 8 matrices of 16-bit elements from shared memory. Lane l passes the address
// of row l % 8 of matrix l / 8: 16 bytes, 16-byte aligned. to[i] gets matrix i.
namespace tensorcraft::ptx {

// ldmatrix.sync.aligned.m8n8.x4: lane l holds columns 2 (l % 4) and the next of row l / 4.
TC_DEVICE void ldmatrix_x4(uint32_t (&to)[4], const void* row) {
#if TC_PTX
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(cvta_to_shared(row))
               : "memory");
#else
  simt::ldmatrix_x4(to, row, false);
#endif
}

// ldmatrix.sync.aligned.m8n8.x4.trans: lane l holds rows 2 (l % 4) and the next of column l / 4.
TC_DEVICE void ldmatrix_x4_trans(uint32_t (&to)[4], const void* row) {
#if TC_PTX
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(cvta_to_shared(row))
               : "memory");
#else
  simt::ldmatrix_x4(to, row, true);
#endif
}

}  // namespace tensorcraft::ptx
