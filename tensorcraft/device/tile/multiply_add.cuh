// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/device/ptx/mma_bytes.cuh"
#include "tensorcraft/device/vec.cuh"

// One tensor-core instruction of a warp by the type of its operands: f16, bf16, e4m3, e5m2, int8_t,
// whose sums are the bits of int32_t, or float, which is rounded to tf32. In 16-byte chunks all of
// them look alike: one instruction multiplies 16 x 8 elements over two chunks along k.
namespace tensorcraft {

template <class T>
inline constexpr int kMmaDepth = 2 * kVectorSize<T>;  // elements of k

// sums += A B, in mma's layout.
template <class T>
TC_DEVICE void multiply_add(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <>
TC_DEVICE void multiply_add<f16>(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  ptx::mma_m16n8k16_f32_f16_f16_f32(sums, a, b, sums);
}
template <>
TC_DEVICE void multiply_add<bf16>(float (&sums)[4], const uint32_t (&a)[4],
                                  const uint32_t (&b)[2]) {
  ptx::mma_m16n8k16_f32_bf16_bf16_f32(sums, a, b, sums);
}
template <>
TC_DEVICE void multiply_add<e4m3>(float (&sums)[4], const uint32_t (&a)[4],
                                  const uint32_t (&b)[2]) {
  ptx::mma_m16n8k32_f32_e4m3_e4m3_f32(sums, a, b, sums);
}
template <>
TC_DEVICE void multiply_add<e5m2>(float (&sums)[4], const uint32_t (&a)[4],
                                  const uint32_t (&b)[2]) {
  ptx::mma_m16n8k32_f32_e5m2_e5m2_f32(sums, a, b, sums);
}
template <>
TC_DEVICE void multiply_add<int8_t>(float (&sums)[4], const uint32_t (&a)[4],
                                    const uint32_t (&b)[2]) {
  int32_t whole[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) whole[i] = bit_cast<int32_t>(sums[i]);
  ptx::mma_m16n8k32_s32_s8_s8_s32(whole, a, b, whole);
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = bit_cast<float>(whole[i]);
}
template <>
TC_DEVICE void multiply_add<float>(float (&sums)[4], const uint32_t (&a)[4],
                                   const uint32_t (&b)[2]) {
  ptx::mma_m16n8k8_f32_tf32_tf32_f32(sums, a, b, sums);
}

}  // namespace tensorcraft
