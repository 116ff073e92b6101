// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/ptx/cvt.cuh"
#include "tensorcraft/device/ptx/prmt.cuh"
#include "tests/wrappers/kernels/params.h"

// Each thread takes two words x, y and gives one.
namespace tensorcraft::test {

TC_DEVICE void cvt_f16(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_f16_f32(fx);
}
TC_DEVICE void cvt_f32_from_f16(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::cvt_f32_f16(uint16_t(x)));
}
TC_DEVICE void cvt_bf16(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_bf16_f32(fx);
}
TC_DEVICE void cvt_tf32(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rna_tf32_f32(fx);
}
TC_DEVICE void fma_rz(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::fma_rz_f32(fx, fy, fx));
}
TC_DEVICE void cvt_f16x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_f16x2_f32(fx, fy);
}
TC_DEVICE void cvt_bf16x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_bf16x2_f32(fx, fy);
}
TC_DEVICE void cvt_e4m3x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_satfinite_e4m3x2_f32(fx, fy);
}
TC_DEVICE void cvt_e5m2x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_satfinite_e5m2x2_f32(fx, fy);
}
TC_DEVICE void cvt_f16x2_from_e4m3x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_f16x2_e4m3x2(uint16_t(x));
}
TC_DEVICE void cvt_f16x2_from_e5m2x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::cvt_rn_f16x2_e5m2x2(uint16_t(x));
}
TC_DEVICE void max_nan(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::max_nan_f32(fx, fy));
}
TC_DEVICE void min_nan(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::min_nan_f32(fx, fy));
}
TC_DEVICE void prmt(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  block_out(p)[threadIdx.x] = ptx::prmt_b32(x, y, 0x7142);
}
TC_DEVICE void fma_bf16x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::fma_rn_bf16x2(x, y, y);
}
TC_DEVICE void fma_f16x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::fma_rn_f16x2(x, y, y);
}
TC_DEVICE void max_nan_bf16x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::max_nan_bf16x2(x, y);
}
TC_DEVICE void max_nan_f16x2(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = ptx::max_nan_f16x2(x, y);
}
TC_DEVICE void ex2_approx(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::ex2_approx_ftz(fx));
}
TC_DEVICE void rcp_approx(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::rcp_approx_ftz(fx));
}
TC_DEVICE void tanh_approx(const Params& p) {
  const uint32_t x = block_in(p)[threadIdx.x * 2], y = block_in(p)[threadIdx.x * 2 + 1];
  const float fx = bit_cast<float>(x), fy = bit_cast<float>(y);
  (void)x, (void)y, (void)fx, (void)fy;
  block_out(p)[threadIdx.x] = bit_cast<uint32_t>(ptx::tanh_approx(fx));
}

}  // namespace tensorcraft::test
