// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// mma.sync for 8-bit elements: A 16 x 32 (row-major), B 32 x 8 (column-major), C and D 16 x 8. A
// register holds four elements, the first lowest. With g = lane / 4 and t = 4 (lane % 4), a lane
// holds
//   a[0..3]: rows g, g + 8, g, g + 8 at columns t, t, t + 16, t + 16, each with the next three
//   b[0..1]: rows t, t + 16, each with the next three, of column g
//   c, d:    as in device/ptx/mma.cuh
namespace tensorcraft::ptx {

// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 (sm_89)
TC_DEVICE void mma_m16n8k32_f32_e4m3_e4m3_f32(float (&d)[4], const uint32_t (&a)[4],
                                              const uint32_t (&b)[2], const float (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#else
  simt::mma_m16n8k32_e4m3(d, a, b, c);
#endif
}

// mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 (sm_89)
TC_DEVICE void mma_m16n8k32_f32_e5m2_e5m2_f32(float (&d)[4], const uint32_t (&a)[4],
                                              const uint32_t (&b)[2], const float (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#else
  simt::mma_m16n8k32_e5m2(d, a, b, c);
#endif
}

// mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32; sums wrap
TC_DEVICE void mma_m16n8k32_s32_s8_s8_s32(int32_t (&d)[4], const uint32_t (&a)[4],
                                          const uint32_t (&b)[2], const int32_t (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
        "r"(c[2]), "r"(c[3]));
#else
  simt::mma_m16n8k32_s8(d, a, b, c);
#endif
}

// mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32; sums wrap
TC_DEVICE void mma_m16n8k32_s32_u8_u8_s32(int32_t (&d)[4], const uint32_t (&a)[4],
                                          const uint32_t (&b)[2], const int32_t (&c)[4]) {
#if TC_PTX
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
        "r"(c[2]), "r"(c[3]));
#else
  simt::mma_m16n8k32_u8(d, a, b, c);
#endif
}

}  // namespace tensorcraft::ptx
