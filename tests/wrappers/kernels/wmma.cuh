// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/wmma.cuh"
#include "tests/wrappers/kernels/params.h"

namespace tensorcraft::test {

// in: the stride in elements, seven words of nothing, a matrix; out: a lane's registers.
inline constexpr int kWmmaHead = 8, kWmmaMatrixWords = 16 * 32;

template <class T, int kCount>
TC_DEVICE void store_registers(const Params& p, const T (&registers)[kCount]) {
  for (int i = 0; i < kCount; ++i)
    block_out(p)[threadIdx.x * kCount + i] = bit_cast<uint32_t>(registers[i]);
}
TC_DEVICE void wmma_load_a_tf32(const Params& p) {
  uint32_t a[4];
  ptx::wmma_load_a_tf32(a, block_in(p) + kWmmaHead, int(block_in(p)[0]));
  store_registers(p, a);
}
TC_DEVICE void wmma_load_b_tf32(const Params& p) {
  uint32_t b[4];
  ptx::wmma_load_b_tf32(b, block_in(p) + kWmmaHead, int(block_in(p)[0]));
  store_registers(p, b);
}
TC_DEVICE void wmma_load_a_f16(const Params& p) {
  uint32_t a[8];
  ptx::wmma_load_a_f16(a, block_in(p) + kWmmaHead, int(block_in(p)[0]));
  store_registers(p, a);
}
TC_DEVICE void wmma_load_b_f16(const Params& p) {
  uint32_t b[8];
  ptx::wmma_load_b_f16(b, block_in(p) + kWmmaHead, int(block_in(p)[0]));
  store_registers(p, b);
}
TC_DEVICE void wmma_load_c_f32(const Params& p) {
  float c[8];
  ptx::wmma_load_c_f32(c, reinterpret_cast<const float*>(block_in(p) + kWmmaHead),
                       int(block_in(p)[0]));
  store_registers(p, c);
}

// in: four registers of A, four of B and eight of C, one lane after the other; out: of D.
inline constexpr int kWmmaLaneWords = 16;

TC_DEVICE void wmma_mma_tf32(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * kWmmaLaneWords;
  uint32_t a[4], b[4];
  float c[8], d[8];
  for (int i = 0; i < 4; ++i) a[i] = in[i];
  for (int i = 0; i < 4; ++i) b[i] = in[4 + i];
  for (int i = 0; i < 8; ++i) c[i] = bit_cast<float>(in[8 + i]);
  ptx::wmma_mma_tf32(d, a, b, c);
  store_registers(p, d);
}
TC_DEVICE void wmma_mma_f16(const Params& p) {
  const uint32_t* in = block_in(p) + threadIdx.x * kWmmaLaneWords;
  uint32_t a[8], b[8];
  float c[8], d[8];
  for (int i = 0; i < 8; ++i) a[i] = in[i % 4];
  for (int i = 0; i < 8; ++i) b[i] = in[4 + i % 4];
  for (int i = 0; i < 8; ++i) c[i] = bit_cast<float>(in[8 + i]);
  ptx::wmma_mma_f16(d, a, b, c);
  store_registers(p, d);
}

}  // namespace tensorcraft::test
