// SPDX-License-Identifier: Apache-2.0
#pragma once
// The math of device text: CUDA's functions on a GPU, <cmath> on the host. Call the names with the
// suffix f: exp, log, ... are operators in this namespace.
#include "tensorcraft/device/ptx/math.cuh"

namespace tensorcraft {

inline constexpr float kInfinity = bit_cast<float>(0x7f800000u);
inline constexpr float kLowest = bit_cast<float>(0xff7fffffu);  // the lowest finite number
inline constexpr float kNan = bit_cast<float>(0x7fffffffu);
inline constexpr float kLog2E = 1.4426950408889634f;  // exp(x) = exp2(x * kLog2E)
inline constexpr float kLn2 = 0.6931471805599453f;

using ::ceilf;
using ::copysignf;
using ::cosf;
using ::exp2f;
using ::expf;
using ::expm1f;
using ::fabsf;
using ::floorf;
using ::fmaf;
using ::fmodf;
using ::log1pf;
using ::log2f;
using ::logf;
using ::powf;
using ::rintf;  // half-way cases go to even
using ::sinf;
using ::sqrtf;
using ::tanhf;
using ::truncf;
// Given a number and a NaN, these two return the number. If NaN must survive (maximum, ReLU,
// softmax), call fmax_nan and fmin_nan.
using ::fmaxf;
using ::fminf;

TC_DEVICE float fmax_nan(float a, float b) { return ptx::max_nan_f32(a, b); }
TC_DEVICE float fmin_nan(float a, float b) { return ptx::min_nan_f32(a, b); }
TC_DEVICE bool is_nan(float x) { return x != x; }

#if TC_PTX
using ::rsqrtf;
#else
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
#endif

// 2^x by the special function unit: 2 units in the last place, results below 2^-126 are 0.
TC_DEVICE float exp2_fast(float x) { return ptx::ex2_approx_ftz(x); }
// e^x through exp2_fast; its error grows with |x| by |x| * 2^-24.
TC_DEVICE float exp_fast(float x) { return exp2_fast(x * kLog2E); }

// Up to this maximum of scores one fused multiply-add may subtract it from each before exp2_fast.
// It subtracts a product that is rounded from one that is not, which costs 2^-15 at most; at larger
// scores it costs more than any weight survives, and the maximum is subtracted first.
inline constexpr float kLargestFusedShift = 1024.f;

}  // namespace tensorcraft
