// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Conversions between float and the narrow formats: one PTX instruction a function, beside a body
// with the same rounding for the host and for architectures that lack the instruction.
namespace tensorcraft::ptx {

namespace detail {

inline constexpr uint32_t kFloatInfinity = 0x7f800000u;

// Rounds a float's magnitude (sign bit clear, within the format's range) to nearest even in a
// format with fewer bits, and returns the format's bits.
template <int kMantissaBits, int kBias>
TC_HOST_DEVICE constexpr uint32_t narrow(uint32_t magnitude) {
  constexpr int shift = 23 - kMantissaBits;
  constexpr uint32_t smallest_normal = uint32_t(127 + 1 - kBias) << 23;
  if (magnitude < smallest_normal) {
    // One step of this float is one step of the format's subnormals, so the addition rounds there.
    constexpr uint32_t anchor = uint32_t(127 + 24 - kBias - kMantissaBits) << 23;
    return bit_cast<uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(anchor)) - anchor;
  }
  const uint32_t odd = (magnitude >> shift) & 1u;
  magnitude += (1u << (shift - 1)) - 1u + odd;
  return (magnitude - (uint32_t(127 - kBias) << 23)) >> shift;
}

// The float that a finite magnitude of the format stands for; exact.
template <int kMantissaBits, int kBias>
TC_HOST_DEVICE constexpr float widen(uint32_t magnitude) {
  constexpr uint32_t smallest_normal = 1u << kMantissaBits;
  constexpr uint32_t subnormal_step = uint32_t(127 + 1 - kBias - kMantissaBits) << 23;
  if (magnitude < smallest_normal) return float(magnitude) * bit_cast<float>(subnormal_step);
  return bit_cast<float>((magnitude << (23 - kMantissaBits)) + (uint32_t(127 - kBias) << 23));
}

TC_HOST_DEVICE constexpr float with_sign(float magnitude, uint32_t sign) {
  return bit_cast<float>(bit_cast<uint32_t>(magnitude) | sign);
}

// Saturating narrow: beyond the largest finite value (kLargest as a float's bits, infinity
// included) the result is that value with the sign kept; every NaN becomes 0x7f.
template <int kMantissaBits, int kBias, uint32_t kLargest>
TC_HOST_DEVICE constexpr uint8_t narrow_satfinite(float x) {
  const uint32_t bits = bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > kFloatInfinity) return 0x7f;
  const uint32_t clamped = magnitude > kLargest ? kLargest : magnitude;
  return uint8_t(((bits >> 24) & 0x80u) | narrow<kMantissaBits, kBias>(clamped));
}

}  // namespace detail

// cvt.rn.f16.f32: nearest even, infinity from 65520; every NaN becomes 0x7fff.
TC_HOST_DEVICE uint16_t cvt_rn_f16_f32(float x) {
#if defined(__CUDA_ARCH__)
  uint16_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  constexpr uint32_t first_infinite = 0x477ff000u;  // 65520, half-way past the largest value
  const uint32_t bits = bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
  if (magnitude > detail::kFloatInfinity) return 0x7fff;
  if (magnitude >= first_infinite) return uint16_t(sign | 0x7c00u);
  return uint16_t(sign | detail::narrow<10, 15>(magnitude));
#endif
}

// cvt.f32.f16: exact; every NaN becomes 0x7fffffff.
TC_HOST_DEVICE float cvt_f32_f16(uint16_t x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
#else
  const uint32_t magnitude = x & 0x7fffu, sign = uint32_t(x & 0x8000u) << 16;
  if (magnitude > 0x7c00u) return bit_cast<float>(0x7fffffffu);
  if (magnitude == 0x7c00u) return bit_cast<float>(detail::kFloatInfinity | sign);
  return detail::with_sign(detail::widen<10, 15>(magnitude), sign);
#endif
}

// cvt.rn.bf16.f32: nearest even; every NaN becomes 0x7fff.
TC_HOST_DEVICE uint16_t cvt_rn_bf16_f32(float x) {
#if defined(__CUDA_ARCH__)
  uint16_t y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  const uint32_t bits = bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > detail::kFloatInfinity) return 0x7fff;
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

// cvt.rna.tf32.f32: nearest with 10 bits of mantissa, half-way values away from zero, as a float's
// bits whose low 13 are 0; every NaN becomes 0x7fffffff.
TC_HOST_DEVICE uint32_t cvt_rna_tf32_f32(float x) {
#if defined(__CUDA_ARCH__)
  uint32_t y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
#else
  const uint32_t bits = bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > detail::kFloatInfinity) return 0x7fffffffu;
  return (bits + 0x1000u) & ~0x1fffu;
#endif
}

// cvt.rn.f16x2.f32: two values in one register, low in the lower half.
TC_HOST_DEVICE uint32_t cvt_rn_f16x2_f32(float high, float low) {
#if defined(__CUDA_ARCH__)
  uint32_t y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return uint32_t(cvt_rn_f16_f32(high)) << 16 | cvt_rn_f16_f32(low);
#endif
}

// cvt.rn.bf16x2.f32: two values in one register, low in the lower half.
TC_HOST_DEVICE uint32_t cvt_rn_bf16x2_f32(float high, float low) {
#if defined(__CUDA_ARCH__)
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return uint32_t(cvt_rn_bf16_f32(high)) << 16 | cvt_rn_bf16_f32(low);
#endif
}

// cvt.rn.satfinite.e4m3x2.f32: nearest even, at most 448 in magnitude; NaN becomes 0x7f.
TC_HOST_DEVICE uint16_t cvt_rn_satfinite_e4m3x2_f32(float high, float low) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
#else
  constexpr uint32_t largest = 0x43e00000u;  // 448
  return uint16_t(detail::narrow_satfinite<3, 7, largest>(high) << 8 |
                  detail::narrow_satfinite<3, 7, largest>(low));
#endif
}

// cvt.rn.satfinite.e5m2x2.f32: nearest even, at most 57344 in magnitude; NaN becomes 0x7f.
TC_HOST_DEVICE uint16_t cvt_rn_satfinite_e5m2x2_f32(float high, float low) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16_t y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
#else
  constexpr uint32_t largest = 0x47600000u;  // 57344
  return uint16_t(detail::narrow_satfinite<2, 15, largest>(high) << 8 |
                  detail::narrow_satfinite<2, 15, largest>(low));
#endif
}

// cvt.rn.f16x2.e4m3x2: exact; 0x7f and 0xff become the f16 NaN 0x7fff.
TC_HOST_DEVICE uint32_t cvt_rn_f16x2_e4m3x2(uint16_t x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint32_t y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(x));
  return y;
#else
  uint32_t y = 0;
  for (int i = 0; i < 2; ++i) {
    const uint32_t byte = (x >> (8 * i)) & 0xffu, magnitude = byte & 0x7fu;
    const float value = detail::widen<3, 7>(magnitude);
    const uint32_t half =
        magnitude == 0x7fu
            ? 0x7fffu
            : (byte & 0x80u) << 8 | detail::narrow<10, 15>(bit_cast<uint32_t>(value));
    y |= half << (16 * i);
  }
  return y;
#endif
}

// cvt.rn.f16x2.e5m2x2: exact; every NaN becomes the f16 NaN 0x7fff.
TC_HOST_DEVICE uint32_t cvt_rn_f16x2_e5m2x2(uint16_t x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint32_t y;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(y) : "h"(x));
  return y;
#else
  uint32_t y = 0;
  for (int i = 0; i < 2; ++i) {
    const uint32_t half = (x >> (8 * i) & 0xffu) << 8;
    y |= ((half & 0x7fffu) > 0x7c00u ? 0x7fffu : half) << (16 * i);
  }
  return y;
#endif
}

}  // namespace tensorcraft::ptx
