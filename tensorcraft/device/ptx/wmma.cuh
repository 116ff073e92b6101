// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/mma.cuh"

// The older interface to the tensor cores: a warp multiplies 16 x 16 x 8 (tf32) or 16 x 16 x 16
// (f16), and the manual leaves open which lane holds what. From sm_80 on it is two mma.sync, one
// for the left and one for the right half of B: A has the registers of mma.sync's A, B those of the
// left B and then those of the right one, C and D likewise. f16 operands come twice.
// tests/wrappers and `fragments` prove it on a GPU. Pointers are 32-byte aligned, `stride` is the
// distance of two rows (A, C) or columns (B) in elements.
namespace tensorcraft::ptx {

#if !TC_PTX
namespace detail {
// One lane's part of a 16-row operand whose lines of `per_register` elements a register follow each
// other by `stride` words: A, or half of B.
inline void load_lines(uint32_t* to, const uint32_t* from, int stride, int rows_apart, int count) {
  const int line = simt::lane() / 4, word = simt::lane() % 4;
  for (int i = 0; i < count; ++i)
    to[i] = from[(line + i % rows_apart * 8) * stride + word + i / rows_apart * 4];
}
}  // namespace detail
#endif

// wmma.load.a.sync.aligned.row.m16n16k8.tf32
TC_DEVICE void wmma_load_a_tf32(uint32_t (&a)[4], const uint32_t* from, int stride) {
#if TC_PTX
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.tf32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "l"(from), "r"(stride)
               : "memory");
#else
  detail::load_lines(a, from, stride, 2, 4);
#endif
}

// wmma.load.b.sync.aligned.col.m16n16k8.tf32
TC_DEVICE void wmma_load_b_tf32(uint32_t (&b)[4], const uint32_t* from, int stride) {
#if TC_PTX
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k8.tf32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "l"(from), "r"(stride)
               : "memory");
#else
  detail::load_lines(b, from, stride, 1, 2);
  detail::load_lines(b + 2, from + 8 * stride, stride, 1, 2);
#endif
}

// wmma.load.a.sync.aligned.row.m16n16k16.f16
TC_DEVICE void wmma_load_a_f16(uint32_t (&a)[8], const uint32_t* from, int stride) {
#if TC_PTX
  asm volatile(
      "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
      : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]), "=r"(a[4]), "=r"(a[5]), "=r"(a[6]),
        "=r"(a[7])
      : "l"(from), "r"(stride)
      : "memory");
#else
  detail::load_lines(a, from, stride / 2, 2, 4);
  for (int i = 0; i < 4; ++i) a[4 + i] = a[i];
#endif
}

// wmma.load.b.sync.aligned.col.m16n16k16.f16
TC_DEVICE void wmma_load_b_f16(uint32_t (&b)[8], const uint32_t* from, int stride) {
#if TC_PTX
  asm volatile(
      "wmma.load.b.sync.aligned.col.m16n16k16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
      : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]), "=r"(b[4]), "=r"(b[5]), "=r"(b[6]),
        "=r"(b[7])
      : "l"(from), "r"(stride)
      : "memory");
#else
  detail::load_lines(b, from, stride / 2, 1, 2);
  detail::load_lines(b + 2, from + 4 * stride, stride / 2, 1, 2);
  for (int i = 0; i < 4; ++i) b[4 + i] = b[i];
#endif
}

// wmma.load.c.sync.aligned.row.m16n16k8.f32; the map is that of m16n16k16 too.
TC_DEVICE void wmma_load_c_f32(float (&c)[8], const float* from, int stride) {
#if TC_PTX
  asm volatile(
      "wmma.load.c.sync.aligned.row.m16n16k8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]), "=f"(c[4]), "=f"(c[5]), "=f"(c[6]),
        "=f"(c[7])
      : "l"(from), "r"(stride)
      : "memory");
#else
  const int row = simt::lane() / 4, column = simt::lane() % 4 * 2;
  for (int i = 0; i < 8; ++i)
    c[i] = from[(row + i % 4 / 2 * 8) * stride + column + i % 2 + i / 4 * 8];
#endif
}

// wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32
TC_DEVICE void wmma_mma_tf32(float (&d)[8], const uint32_t (&a)[4], const uint32_t (&b)[4],
                             const float (&c)[8]) {
#if TC_PTX
  asm volatile(
      "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, {%12, %13, %14, %15}, "
      "{%16, %17, %18, %19, %20, %21, %22, %23};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]),
        "=f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
        "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "f"(c[4]), "f"(c[5]), "f"(c[6]), "f"(c[7]));
#else
  for (int half = 0; half < 2; ++half) {
    const uint32_t part[2] = {b[2 * half], b[2 * half + 1]};
    const float(&old)[4] = *reinterpret_cast<const float(*)[4]>(c + 4 * half);
    simt::mma_m16n8k8_tf32(*reinterpret_cast<float(*)[4]>(d + 4 * half), a, part, old);
  }
#endif
}

// wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32, operands f16
TC_DEVICE void wmma_mma_f16(float (&d)[8], const uint32_t (&a)[8], const uint32_t (&b)[8],
                            const float (&c)[8]) {
#if TC_PTX
  asm volatile(
      "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19, %20, %21, %22, %23}, {%24, %25, %26, %27, %28, %29, %30, %31};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]),
        "=f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]),
        "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]),
        "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "f"(c[4]), "f"(c[5]), "f"(c[6]), "f"(c[7]));
#else
  const uint32_t(&whole)[4] = *reinterpret_cast<const uint32_t(*)[4]>(&a);
  for (int half = 0; half < 2; ++half) {
    const uint32_t part[2] = {b[2 * half], b[2 * half + 1]};
    const float(&old)[4] = *reinterpret_cast<const float(*)[4]>(c + 4 * half);
    simt::mma_m16n8k16_f16(*reinterpret_cast<float(*)[4]>(d + 4 * half), whole, part, old);
  }
#endif
}

}  // namespace tensorcraft::ptx
