// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// A warp computes D = A B + C for A 16 x 16 (row-major), B 16 x 8 (column-major), C and D 16 x 8.
// For 16-bit elements, with g = lane / 4 and t = 2 (lane % 4), a lane holds
//   a[0..3]: rows g, g + 8, g, g + 8 at columns t, t, t + 8, t + 8, each with the next column
//   b[0..1]: rows t, t + 8, each with the next row, of column g
//   c, d:    row g columns t, t + 1, then row g + 8 columns t, t + 1
// Two 16-bit elements share a register, the first in the lower half. k8 has the first half of k.
namespace tensorcraft::ptx {

// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
TC_DEVICE void mma_m16n8k16_f32_f16_f16_f32(float (&d)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2], const float (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#else
  simt::mma_m16n8k16_f16(d, a, b, c);
#endif
}

// mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
TC_DEVICE void mma_m16n8k8_f32_f16_f16_f32(float (&d)[4], const uint32_t (&a)[2],
                                           const uint32_t (&b)[1], const float (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
  simt::mma_m16n8k8_f16(d, a, b, c);
#endif
}

// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
TC_DEVICE void mma_m16n8k16_f32_bf16_bf16_f32(float (&d)[4], const uint32_t (&a)[4],
                                              const uint32_t (&b)[2], const float (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#else
  simt::mma_m16n8k16_bf16(d, a, b, c);
#endif
}

// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: A is 16 x 8, B 8 x 8, a register holds one
// element, rounded by to_tf32(). With g = lane / 4 and t = lane % 4, a lane holds
//   a[0..3]: rows g, g + 8, g, g + 8 at columns t, t, t + 4, t + 4
//   b[0..1]: rows t, t + 4 of column g
TC_DEVICE void mma_m16n8k8_f32_tf32_tf32_f32(float (&d)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2], const float (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#else
  simt::mma_m16n8k8_tf32(d, a, b, c);
#endif
}

}  // namespace tensorcraft::ptx
