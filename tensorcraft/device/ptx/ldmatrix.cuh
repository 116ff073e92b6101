// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"

// A warp loads 1, 2 or 4 matrices of 8 x 8 16-bit elements from shared memory. Lane l passes the
// address of row l % 8 of matrix l / 8: 16 bytes, 16-byte aligned; lanes past the last row pass
// anything. to[i] gets matrix i.
namespace tensorcraft::ptx {

// ldmatrix.sync.aligned.m8n8.x1: lane l holds columns 2 (l % 4) and the next of row l / 4.
TC_DEVICE void ldmatrix_x1(uint32_t (&to)[1], const void* row) {
#if TC_PTX
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(to[0])
               : "r"(cvta_to_shared(row))
               : "memory");
#else
  simt::ldmatrix_x1(to, row, false);
#endif
}

// ldmatrix.sync.aligned.m8n8.x1.trans: lane l holds rows 2 (l % 4) and the next of column l / 4.
TC_DEVICE void ldmatrix_x1_trans(uint32_t (&to)[1], const void* row) {
#if TC_PTX
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(to[0])
               : "r"(cvta_to_shared(row))
               : "memory");
#else
  simt::ldmatrix_x1(to, row, true);
#endif
}

// ldmatrix.sync.aligned.m8n8.x2
TC_DEVICE void ldmatrix_x2(uint32_t (&to)[2], const void* row) {
#if TC_PTX
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(cvta_to_shared(row))
               : "memory");
#else
  simt::ldmatrix_x2(to, row, false);
#endif
}

// ldmatrix.sync.aligned.m8n8.x2.trans
TC_DEVICE void ldmatrix_x2_trans(uint32_t (&to)[2], const void* row) {
#if TC_PTX
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(cvta_to_shared(row))
               : "memory");
#else
  simt::ldmatrix_x2(to, row, true);
#endif
}

// ldmatrix.sync.aligned.m8n8.x4
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

// ldmatrix.sync.aligned.m8n8.x4.trans
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
