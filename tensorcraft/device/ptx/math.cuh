// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

namespace tensorcraft::ptx {

// max.NaN.f32: NaN where either is NaN; +0 is above -0.
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

// min.NaN.f32: NaN where either is NaN; -0 is below +0.
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
