// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/device/ptx/mma_bytes.cuh"
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/ptx/wmma.cuh"
#include "tensorcraft/device/shared.cuh"

// Kernels of one block that show which element of a matrix each register of a lane holds, for
// diagnose/fragments.cpp to compare with the maps.
namespace tensorcraft::kernel::fragments {

struct Params {
  const uint32_t* in;
  uint32_t* out;
};

// in: a lane's registers a, b and c, one lane after the other; out: its registers d.
template <class Sum, class Mma>
TC_DEVICE void multiply(const Params& p, Mma mma) {
  const uint32_t* in = p.in + threadIdx.x * 10;
  const uint32_t a[4] = {in[0], in[1], in[2], in[3]}, b[2] = {in[4], in[5]};
  const Sum c[4] = {bit_cast<Sum>(in[6]), bit_cast<Sum>(in[7]), bit_cast<Sum>(in[8]),
                    bit_cast<Sum>(in[9])};
  Sum d[4];
  mma(d, a, b, c);
  for (int i = 0; i < 4; ++i) p.out[threadIdx.x * 4 + i] = bit_cast<uint32_t>(d[i]);
}
TC_DEVICE void mma_f16(const Params& p) {
  multiply<float>(p, [](float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2],
                        const float(&c)[4]) { ptx::mma_m16n8k16_f32_f16_f16_f32(d, a, b, c); });
}
TC_DEVICE void mma_bf16(const Params& p) {
  multiply<float>(p, [](float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2],
                        const float(&c)[4]) { ptx::mma_m16n8k16_f32_bf16_bf16_f32(d, a, b, c); });
}
TC_DEVICE void mma_tf32(const Params& p) {
  multiply<float>(p, [](float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2],
                        const float(&c)[4]) { ptx::mma_m16n8k8_f32_tf32_tf32_f32(d, a, b, c); });
}
TC_DEVICE void mma_e4m3(const Params& p) {
  multiply<float>(p, [](float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2],
                        const float(&c)[4]) { ptx::mma_m16n8k32_f32_e4m3_e4m3_f32(d, a, b, c); });
}
TC_DEVICE void mma_s8(const Params& p) {
  multiply<int32_t>(p, [](int32_t(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2],
                          const int32_t(&c)[4]) { ptx::mma_m16n8k32_s32_s8_s8_s32(d, a, b, c); });
}

struct Matrices {
  alignas(16) uint32_t rows[32][4];
};
// in: four 8 x 8 matrices of 16-bit elements; out: a lane's registers.
template <bool kTransposed>
TC_DEVICE void load_matrices(const Params& p) {
  auto& shared = static_shared<Matrices>();
  for (int i = 0; i < 4; ++i) shared.rows[threadIdx.x][i] = p.in[threadIdx.x * 4 + i];
  __syncwarp();
  uint32_t to[4];
  if constexpr (kTransposed) {
    ptx::ldmatrix_x4_trans(to, shared.rows[threadIdx.x]);
  } else {
    ptx::ldmatrix_x4(to, shared.rows[threadIdx.x]);
  }
  for (int i = 0; i < 4; ++i) p.out[threadIdx.x * 4 + i] = to[i];
}
TC_DEVICE void ldmatrix(const Params& p) { load_matrices<false>(p); }
TC_DEVICE void ldmatrix_trans(const Params& p) { load_matrices<true>(p); }

// in: A (rows), B (columns) and C (rows), 16 lines of 16 words each; out: a lane's registers a and
// b (4 each) and c (8), D of WMMA (8) and of two mma.sync with the same registers (8).
template <class Wmma, class Mma>
TC_DEVICE void store_wmma(const Params& p, const uint32_t* a, const uint32_t* b, Wmma wmma,
                          Mma mma) {
  uint32_t* out = p.out + threadIdx.x * 32;
  float c[8], d[8], halves[2][4];
  ptx::wmma_load_c_f32(c, reinterpret_cast<const float*>(p.in + 512), 16);
  wmma(d, c);
  for (int half = 0; half < 2; ++half) {
    const float old[4] = {c[4 * half], c[4 * half + 1], c[4 * half + 2], c[4 * half + 3]};
    const uint32_t right[2] = {b[2 * half], b[2 * half + 1]}, left[4] = {a[0], a[1], a[2], a[3]};
    mma(halves[half], left, right, old);
  }
  for (int i = 0; i < 4; ++i) out[i] = a[i], out[4 + i] = b[i];
  for (int i = 0; i < 8; ++i) {
    out[8 + i] = bit_cast<uint32_t>(c[i]);
    out[16 + i] = bit_cast<uint32_t>(d[i]);
    out[24 + i] = bit_cast<uint32_t>(halves[i / 4][i % 4]);
  }
}
TC_DEVICE void wmma_tf32(const Params& p) {
  uint32_t a[4], b[4];
  ptx::wmma_load_a_tf32(a, p.in, 16);
  ptx::wmma_load_b_tf32(b, p.in + 256, 16);
  store_wmma(
      p, a, b, [&](float(&d)[8], const float(&c)[8]) { ptx::wmma_mma_tf32(d, a, b, c); },
      [](float(&d)[4], const uint32_t(&x)[4], const uint32_t(&y)[2], const float(&c)[4]) {
        ptx::mma_m16n8k8_f32_tf32_tf32_f32(d, x, y, c);
      });
}
TC_DEVICE void wmma_f16(const Params& p) {
  uint32_t a[8], b[8];
  ptx::wmma_load_a_f16(a, p.in, 32);
  ptx::wmma_load_b_f16(b, p.in + 256, 32);
  store_wmma(
      p, a, b, [&](float(&d)[8], const float(&c)[8]) { ptx::wmma_mma_f16(d, a, b, c); },
      [](float(&d)[4], const uint32_t(&x)[4], const uint32_t(&y)[2], const float(&c)[4]) {
        ptx::mma_m16n8k16_f32_f16_f16_f32(d, x, y, c);
      });
}

// in: a thread's registers a, 4 words; then B, 16 columns of 16 bf16 (8 words); out: d, 8 words.
struct WgmmaColumns {
  alignas(128) uint32_t units[2][16][4];  // half of k, column
};
TC_DEVICE void wgmma_bf16(const Params& p) {
  auto& shared = static_shared<WgmmaColumns>();
  const int thread = int(threadIdx.x);
  if (thread < 128) {
    const int column = thread / 8, word = thread % 8;
    shared.units[word / 4][column][word % 4] = p.in[128 * 4 + thread];
  }
  ptx::fence_proxy_async();
  __syncthreads();
  const uint32_t a[4] = {p.in[thread * 4], p.in[thread * 4 + 1], p.in[thread * 4 + 2],
                         p.in[thread * 4 + 3]};
  const uint64_t b = wgmma_descriptor(
      {.address = ptx::cvta_to_shared(&shared), .leading = sizeof(shared.units[0]), .stride = 128});
  float d[8] = {};
  ptx::wgmma_fence();
  ptx::wgmma_mma_async<Wgmma{.n = 16}>(d, a, b, false);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  for (int i = 0; i < 8; ++i) p.out[thread * 8 + i] = bit_cast<uint32_t>(d[i]);
}

}  // namespace tensorcraft::kernel::fragments
