// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/device/ptx/mma_bytes.cuh"
#include "tests/wrappers/kernels/params.h"

// in: a lane's registers of A, of B, of C, one lane after the other; out: of D.
namespace tensorcraft::test {

TC_DEVICE void mma_f16_k8(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 7;
  uint32_t a[2], b[1];
  float c[4], d[4];
  for (int i = 0; i < 2; ++i) a[i] = in[i];
  for (int i = 0; i < 1; ++i) b[i] = in[2 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<float>(in[3 + i]);
  ptx::mma_m16n8k8_f32_f16_f16_f32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_f16(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  float c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<float>(in[6 + i]);
  ptx::mma_m16n8k16_f32_f16_f16_f32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_bf16(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  float c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<float>(in[6 + i]);
  ptx::mma_m16n8k16_f32_bf16_bf16_f32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_tf32(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  float c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<float>(in[6 + i]);
  ptx::mma_m16n8k8_f32_tf32_tf32_f32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_e4m3(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  float c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<float>(in[6 + i]);
  ptx::mma_m16n8k32_f32_e4m3_e4m3_f32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_e5m2(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  float c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<float>(in[6 + i]);
  ptx::mma_m16n8k32_f32_e5m2_e5m2_f32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_s8(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  int32_t c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<int32_t>(in[6 + i]);
  ptx::mma_m16n8k32_s32_s8_s8_s32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_u8(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * 10;
  uint32_t a[4], b[2];
  int32_t c[4], d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 2; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 4; ++i) c[i] = bit_cast<int32_t>(in[6 + i]);
  ptx::mma_m16n8k32_s32_u8_u8_s32(d, a, b, c);
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}

}  // namespace tensorcraft::test
