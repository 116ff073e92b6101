// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/wgmma.cuh"
#include "tensorcraft/device/ptx/cvta.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tests/wrappers/kernels/params.h"

// in: descriptors of A and B as if shared memory began at the image, two words each; whether to
// accumulate; three words of nothing; A's registers, 4 a thread; D's, n / 2 a thread; an image of
// shared memory. out: D's registers.
namespace tensorcraft::test {

inline constexpr int kImageWords = 48 * 1024 / 4, kHeadWords = 8, kWarpgroupThreads = 128;

struct Image {
  alignas(1024) uint32_t words[kImageWords];
};

inline constexpr Wgmma kBf16N64{.n = 64};
inline constexpr Wgmma kF16N128{.n = 128, .a = WgmmaType::f16, .b = WgmmaType::f16};
inline constexpr Wgmma kBf16N256Mn{.n = 256, .a_major = Major::mn, .b_major = Major::mn};
inline constexpr Wgmma kF16N8{.n = 8, .a = WgmmaType::f16, .b = WgmmaType::f16};
inline constexpr Wgmma kBf16N32Mn{.n = 32, .a_major = Major::mn, .b_major = Major::mn};
inline constexpr Wgmma kF16N96Mixed{
    .n = 96, .a = WgmmaType::f16, .b = WgmmaType::f16, .a_major = Major::mn};
inline constexpr Wgmma kBf16N16Mixed{.n = 16, .b_major = Major::mn};
inline constexpr Wgmma kBf16N192Signs{.n = 192, .negate_a = true};
inline constexpr Wgmma kTf32N64{
    .n = 64, .a = WgmmaType::tf32, .b = WgmmaType::tf32, .negate_b = true};
inline constexpr Wgmma kE4m3N128{.n = 128, .a = WgmmaType::e4m3, .b = WgmmaType::e4m3};
inline constexpr Wgmma kE5m2E4m3N32{.n = 32, .a = WgmmaType::e5m2, .b = WgmmaType::e4m3};
inline constexpr Wgmma kBf16N64Rs{.n = 64};
inline constexpr Wgmma kF16N256Rs{
    .n = 256, .a = WgmmaType::f16, .b = WgmmaType::f16, .b_major = Major::mn};
inline constexpr Wgmma kTf32N16Rs{.n = 16, .a = WgmmaType::tf32, .b = WgmmaType::tf32};
inline constexpr Wgmma kE4m3N64Rs{.n = 64, .a = WgmmaType::e4m3, .b = WgmmaType::e4m3};
inline constexpr Wgmma kE5m2N8Rs{.n = 8, .a = WgmmaType::e5m2, .b = WgmmaType::e5m2};
template <Wgmma Op, bool kARegisters>
TC_DEVICE void run_wgmma(const Params& p) {
  auto& image = dynamic_shared<Image>();
  const uint32_t* in = block_in(p);
  const int thread = int(threadIdx.x);
  const uint32_t* a_words = in + kHeadWords + thread * 4;
  const uint32_t* d_words = in + kHeadWords + kWarpgroupThreads * 4 + thread * (Op.n / 2);
  const uint32_t* image_words = in + kHeadWords + kWarpgroupThreads * (4 + Op.n / 2);
  for (int i = thread; i < kImageWords; i += kWarpgroupThreads) image.words[i] = image_words[i];
  ptx::fence_proxy_async();
  __syncthreads();
  const uint64_t base = ptx::cvta_to_shared(&image) >> 4;
  const uint64_t a_descriptor = (uint64_t(in[1]) << 32 | in[0]) + base;
  const uint64_t b_descriptor = (uint64_t(in[3]) << 32 | in[2]) + base;
  float d[Op.n / 2];
  for (int i = 0; i < Op.n / 2; ++i) d[i] = bit_cast<float>(d_words[i]);
  const uint32_t a[4] = {a_words[0], a_words[1], a_words[2], a_words[3]};
  ptx::wgmma_fence();
  if constexpr (kARegisters) {
    ptx::wgmma_mma_async<Op>(d, a, b_descriptor, in[4] != 0);
  } else {
    ptx::wgmma_mma_async<Op>(d, a_descriptor, b_descriptor, in[4] != 0);
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_landed(d);
  for (int i = 0; i < Op.n / 2; ++i)
    block_out(p)[thread * (Op.n / 2) + i] = bit_cast<uint32_t>(d[i]);
}

TC_DEVICE void wgmma_bf16_n64(const Params& p) { run_wgmma<kBf16N64, false>(p); }
TC_DEVICE void wgmma_f16_n128(const Params& p) { run_wgmma<kF16N128, false>(p); }
TC_DEVICE void wgmma_bf16_n256_mn(const Params& p) { run_wgmma<kBf16N256Mn, false>(p); }
TC_DEVICE void wgmma_f16_n8(const Params& p) { run_wgmma<kF16N8, false>(p); }
TC_DEVICE void wgmma_bf16_n32_mn(const Params& p) { run_wgmma<kBf16N32Mn, false>(p); }
TC_DEVICE void wgmma_f16_n96_mixed(const Params& p) { run_wgmma<kF16N96Mixed, false>(p); }
TC_DEVICE void wgmma_bf16_n16_mixed(const Params& p) { run_wgmma<kBf16N16Mixed, false>(p); }
TC_DEVICE void wgmma_bf16_n192_signs(const Params& p) { run_wgmma<kBf16N192Signs, false>(p); }
TC_DEVICE void wgmma_tf32_n64(const Params& p) { run_wgmma<kTf32N64, false>(p); }
TC_DEVICE void wgmma_e4m3_n128(const Params& p) { run_wgmma<kE4m3N128, false>(p); }
TC_DEVICE void wgmma_e5m2_e4m3_n32(const Params& p) { run_wgmma<kE5m2E4m3N32, false>(p); }
TC_DEVICE void wgmma_bf16_n64_rs(const Params& p) { run_wgmma<kBf16N64Rs, true>(p); }
TC_DEVICE void wgmma_f16_n256_rs(const Params& p) { run_wgmma<kF16N256Rs, true>(p); }
TC_DEVICE void wgmma_tf32_n16_rs(const Params& p) { run_wgmma<kTf32N16Rs, true>(p); }
TC_DEVICE void wgmma_e4m3_n64_rs(const Params& p) { run_wgmma<kE4m3N64Rs, true>(p); }
TC_DEVICE void wgmma_e5m2_n8_rs(const Params& p) { run_wgmma<kE5m2N8Rs, true>(p); }
// The other sizes, whose registers have other numbers in the instruction's text.
TC_DEVICE void wgmma_bf16_n48(const Params& p) { run_wgmma<Wgmma{.n = 48}, false>(p); }
TC_DEVICE void wgmma_bf16_n80(const Params& p) { run_wgmma<Wgmma{.n = 80}, false>(p); }
TC_DEVICE void wgmma_bf16_n112(const Params& p) { run_wgmma<Wgmma{.n = 112}, false>(p); }
TC_DEVICE void wgmma_bf16_n144(const Params& p) { run_wgmma<Wgmma{.n = 144}, false>(p); }
TC_DEVICE void wgmma_bf16_n160(const Params& p) { run_wgmma<Wgmma{.n = 160}, false>(p); }
TC_DEVICE void wgmma_bf16_n176(const Params& p) { run_wgmma<Wgmma{.n = 176}, false>(p); }
TC_DEVICE void wgmma_bf16_n208(const Params& p) { run_wgmma<Wgmma{.n = 208}, false>(p); }
TC_DEVICE void wgmma_bf16_n224(const Params& p) { run_wgmma<Wgmma{.n = 224}, false>(p); }
TC_DEVICE void wgmma_bf16_n240(const Params& p) { run_wgmma<Wgmma{.n = 240}, false>(p); }
TC_DEVICE void wgmma_bf16_n32_rs(const Params& p) { run_wgmma<Wgmma{.n = 32}, true>(p); }
TC_DEVICE void wgmma_bf16_n48_rs(const Params& p) { run_wgmma<Wgmma{.n = 48}, true>(p); }
TC_DEVICE void wgmma_bf16_n80_rs(const Params& p) { run_wgmma<Wgmma{.n = 80}, true>(p); }
TC_DEVICE void wgmma_bf16_n96_rs(const Params& p) { run_wgmma<Wgmma{.n = 96}, true>(p); }
TC_DEVICE void wgmma_bf16_n112_rs(const Params& p) { run_wgmma<Wgmma{.n = 112}, true>(p); }
TC_DEVICE void wgmma_bf16_n128_rs(const Params& p) { run_wgmma<Wgmma{.n = 128}, true>(p); }
TC_DEVICE void wgmma_bf16_n144_rs(const Params& p) { run_wgmma<Wgmma{.n = 144}, true>(p); }
TC_DEVICE void wgmma_bf16_n160_rs(const Params& p) { run_wgmma<Wgmma{.n = 160}, true>(p); }
TC_DEVICE void wgmma_bf16_n176_rs(const Params& p) { run_wgmma<Wgmma{.n = 176}, true>(p); }
TC_DEVICE void wgmma_bf16_n192_rs(const Params& p) { run_wgmma<Wgmma{.n = 192}, true>(p); }
TC_DEVICE void wgmma_bf16_n208_rs(const Params& p) { run_wgmma<Wgmma{.n = 208}, true>(p); }
TC_DEVICE void wgmma_bf16_n224_rs(const Params& p) { run_wgmma<Wgmma{.n = 224}, true>(p); }
TC_DEVICE void wgmma_bf16_n240_rs(const Params& p) { run_wgmma<Wgmma{.n = 240}, true>(p); }

}  // namespace tensorcraft::test
