// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/ptx/cvt.cuh"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

namespace tensorcraft::ptx {

// max.NaN.f32: NaN if either is NaN; +0 is above -0.
TC_DEVICE float max_nan_f32(float a, float b) {
#if TC_PTX
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  if (a != a || b != b) return bit_cast<float>(0x7fffffffu);
  if (a == b) return bit_cast<float>(bit_cast<uint32_t>(a) & bit_cast<uint32_t>(b));
  return a > b ? a : b;
#endif
}

// fma.rz.f32: a * b + c, rounded towards 0, so to no infinity unless one comes in.
TC_DEVICE float fma_rz_f32(float a, float b, float c) {
#if TC_PTX
  float y;
  asm("fma.rz.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
  return y;
#else
  // sum + rest is exact, and so is the product.
  const double product = double(a) * double(b), sum = product + double(c);
  if (sum != sum) return bit_cast<float>(0x7fffffffu);
  if (sum - sum != 0) return float(sum);
  const double of_c = sum - product;
  const double rest = (product - (sum - of_c)) + (double(c) - of_c);
  const double magnitude = sum < 0 ? -sum : sum, beyond = sum < 0 ? -rest : rest;
  const float nearest =
      magnitude > 0x1.fffffep127 ? bit_cast<float>(0x7f7fffffu) : float(magnitude);
  const bool is_above = nearest > magnitude || (nearest == magnitude && beyond < 0);
  const uint32_t bits = bit_cast<uint32_t>(nearest) - (is_above && nearest > 0 ? 1 : 0);
  return bit_cast<float>(sum < 0 ? bits | 0x80000000u : bits);
#endif
}

// min.NaN.f32: NaN if either is NaN; -0 is below +0.
TC_DEVICE float min_nan_f32(float a, float b) {
#if TC_PTX
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  if (a != a || b != b) return bit_cast<float>(0x7fffffffu);
  if (a == b) return bit_cast<float>(bit_cast<uint32_t>(a) | bit_cast<uint32_t>(b));
  return a < b ? a : b;
#endif
}

#if !TC_PTX
// The larger in each half of two words, of 16-bit floats whose infinity is `infinity`.
inline uint32_t larger_halves(uint32_t a, uint32_t b, int infinity) {
  const auto magnitude = [](uint32_t x) { return int(x & 0x7fffu); };
  const auto order = [&](uint32_t x) { return x & 0x8000u ? -1 - magnitude(x) : magnitude(x); };
  uint32_t y = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const uint32_t p = a >> shift & 0xffffu, q = b >> shift & 0xffffu;
    const bool is_nan = magnitude(p) > infinity || magnitude(q) > infinity;
    y |= (is_nan ? 0x7fffu : order(p) > order(q) ? p : q) << shift;
  }
  return y;
}
#endif

#if !TC_PTX
// a b + c with the last bit set if anything is cut off, so that a narrower type rounds it as it
// would the exact sum. The product of 16-bit floats is exact in a double.
inline float fma_to_odd(float a, float b, float c) {
  const double product = double(a) * double(b), sum = product + double(c);
  const float nearest = float(sum);
  if (!std::isfinite(nearest)) return nearest;
  const double added = sum - product, lost = (product - (sum - added)) + (double(c) - added);
  const double rest = (sum - double(nearest)) + lost;
  if (rest == 0 || bit_cast<uint32_t>(nearest) % 2 == 1) return nearest;
  return std::nextafter(nearest, rest > 0 ? INFINITY : -INFINITY);
}
#endif

// fma.rn.bf16x2: a b + c of two pairs, rounded once; subnormals are kept, a NaN becomes 0x7fff.
TC_DEVICE uint32_t fma_rn_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
#if TC_PTX
  uint32_t y;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
#else
  const auto upper = [](uint32_t x) { return bit_cast<float>(x & 0xffff0000u); };
  return cvt_rn_bf16x2_f32(fma_to_odd(upper(a), upper(b), upper(c)),
                           fma_to_odd(upper(a << 16), upper(b << 16), upper(c << 16)));
#endif
}

// fma.rn.f16x2: likewise.
TC_DEVICE uint32_t fma_rn_f16x2(uint32_t a, uint32_t b, uint32_t c) {
#if TC_PTX
  uint32_t y;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
#else
  const auto half = [](uint32_t x, int shift) { return cvt_f32_f16(uint16_t(x >> shift)); };
  const auto of = [&](int shift) {
    return fma_to_odd(half(a, shift), half(b, shift), half(c, shift));
  };
  return cvt_rn_f16x2_f32(of(16), of(0));
#endif
}

// max.NaN.bf16x2: of two pairs; a NaN becomes 0x7fff, +0 is above -0.
TC_DEVICE uint32_t max_nan_bf16x2(uint32_t a, uint32_t b) {
#if TC_PTX
  uint32_t y;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
#else
  return larger_halves(a, b, 0x7f80);
#endif
}

// max.NaN.f16x2: likewise.
TC_DEVICE uint32_t max_nan_f16x2(uint32_t a, uint32_t b) {
#if TC_PTX
  uint32_t y;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
#else
  return larger_halves(a, b, 0x7c00);
#endif
}

#if !TC_PTX
// Subnormals become zero with their sign, as the .ftz instructions do with operands and results.
TC_DEVICE float flush_subnormal(float x) {
  return std::fabs(x) < bit_cast<float>(0x00800000u) ? std::copysign(0.0f, x) : x;
}
// The GPU's results have one NaN.
TC_DEVICE float one_nan(float x) { return x != x ? bit_cast<float>(0x7fffffffu) : x; }
#endif

// ex2.approx.ftz.f32: 2^x within 2 units in the last place; 0 for -infinity.
TC_DEVICE float ex2_approx_ftz(float x) {
#if TC_PTX
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return one_nan(flush_subnormal(std::exp2(flush_subnormal(x))));
#endif
}

// rcp.approx.ftz.f32: 1/x within 1 unit in the last place.
TC_DEVICE float rcp_approx_ftz(float x) {
#if TC_PTX
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return one_nan(flush_subnormal(1.0f / flush_subnormal(x)));
#endif
}

// tanh.approx.f32: relative error up to 2^-11, for outputs of 16 bits or fewer.
TC_DEVICE float tanh_approx(float x) {
#if TC_PTX
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return one_nan(std::tanh(x));
#endif
}

}  // namespace tensorcraft::ptx
