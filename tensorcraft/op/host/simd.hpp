// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

// One function compiled for AVX-512, AVX2 and any machine; the loader picks one. What it calls must
// be inline, and loops must have no early exit, to become vector code in each.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TC_HOST_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TC_HOST_CLONES
#endif

// Functions of one float without branches, tables or library calls, for loops that the compiler
// turns into vector code. NaN in, NaN out.
namespace tensorcraft::host {

// `if_true` in lanes that meet the condition; both sides are computed.
inline float select(bool condition, float if_true, float if_false) {
  return condition ? if_true : if_false;
}

// A NaN on either side is the result.
inline float max_nan(float a, float b) { return ((a > b) | (a != a)) ? a : b; }
inline float min_nan(float a, float b) { return ((a < b) | (a != a)) ? a : b; }

// Coefficients from the constant term up, by Horner's rule.
template <int N>
inline float polynomial(float x, const float (&coefficients)[N]) {
  float sum = coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// 2^n for n in [-127, 127]; 0 at -127.
inline float power_of_two(int32_t n) { return std::bit_cast<float>(uint32_t(n + 127) << 23); }

// e^x as (1 + tail) 2^exponent, for x in [-105, 89]: a float, or a double that float would round.
struct Exp {
  float tail;
  int32_t exponent;
};
template <class T>
inline Exp exp_parts(T x) {
  // Least maximum relative error for (e^r - 1 - r) / r^2 on [-ln2 / 2, ln2 / 2].
  constexpr float kTail[] = {0.49999993418369f, 0.166665201247708f, 0.04166839283022992f,
                             0.00836877883352698f, 0.001381454246235875f};
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum.
  constexpr float kRound = 12582912.0f;
  const float shifted = float(x) * 1.44269504f + kRound;
  const float n = shifted - kRound;
  // ln2 in two parts, the first with so few bits that n times it is exact.
  float r = float(x - T(n) * T(0.693359375));
  r = r + n * 2.12194440e-4f;
  return {r + r * r * polynomial(r, kTail),
          int32_t(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound))};
}

// Within 2 ulp, subnormal results included; inf above 88.73, 0 below -104.
template <class T>
inline float exp(T x) {
  x = x > T(89) ? T(89) : x;
  x = x < T(-105) ? T(-105) : x;
  const auto [tail, exponent] = exp_parts(x);
  // In two steps, so that neither factor leaves the range of float.
  const int32_t half = exponent >> 1;
  return (1.0f + tail) * power_of_two(half) * power_of_two(exponent - half);
}

// e^x - 1 for x <= 0, within 2 ulp: near 0 the exponent is 0 and nothing cancels.
inline float expm1_below_zero(float x) {
  const auto [tail, exponent] = exp_parts(select(x < -40.0f, -40.0f, x));
  const float power = power_of_two(exponent);
  return power * tail + (power - 1.0f);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// Absolute error below 1e-7 and relative below 3e-7.
inline float tanh(float x) {
  constexpr float kNearZero[] = {0.9999999957832075f,   -0.33333255446324145f,
                                 0.13330996779216206f,  -0.05370983192685435f,
                                 0.020552803419703124f, -0.005615586727557752f};
  const float a = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float far = 1.0f - 2.0f / (1.0f + exp(2.0f * a));
  const float near = x * polynomial(x * x, kNearZero);
  return select(a < 0.625f, near, select(x < 0.0f, -far, far));
}

// erfc(a) for a >= 0: t e^(-a^2 + p(t)) with t = 1 / (1 + a / 2). The square is given, as its
// absolute error is a relative one of the result.
inline float erfc_positive(float a, double square) {
  constexpr float kLog[] = {-1.2654463823462963f,  0.9985919182504489f,   0.38705494327802437f,
                            0.032352412396945335f, 0.008568129125715168f, -0.09511333847069095f,
                            -0.6772139948774529f,  1.141742730260315f,    -0.6742167409199251f,
                            0.1436803695321917f};
  const float t = 1.0f / (1.0f + 0.5f * a);
  return t * exp(double(polynomial(t, kLog)) - square);
}

// erf(x) for |x| <= 1.
inline float erf_near_zero(float x) {
  constexpr float kNearZero[] = {
      1.128379165913703f,    -0.3761262713561042f,    0.11283600172069023f,  -0.026854444411907697f,
      0.005189534990360277f, -0.0008020838165281437f, 7.889109117408942e-05f};
  return x * polynomial(x * x, kNearZero);
}

// Absolute error below 1.5e-7.
inline float erf(float x) {
  const float a = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu);
  const float far = 1.0f - erfc_positive(a, double(a) * a);
  return select(a < 1.0f, erf_near_zero(x), select(x < 0.0f, -far, far));
}

inline float relu(float x) { return select(x < 0.0f, 0.0f, x); }
inline float silu(float x) { return x / (1.0f + exp(-x)); }

// x times the normal distribution's cumulative function; a far negative x keeps its relative
// precision since nothing cancels.
inline float gelu(float x) {
  const float a = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu) * 0.70710678f;
  const float tail = 0.5f * erfc_positive(a, 0.5 * x * x);
  const float near = 0.5f + 0.5f * erf_near_zero(0.70710678f * x);
  return x * select(a < 0.5f, near, select(x < 0.0f, tail, 1.0f - tail));
}

// The tanh form of gelu, written as x sigmoid(2 u) with u in double.
inline float gelu_tanh(float x) {
  const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return x / (1.0f + exp(-2.0 * u));
}

// Bits of a half or bfloat16 and back, rounded to nearest even; a NaN stays one.
inline float half_to_float(uint16_t bits) {
  const uint32_t magnitude = uint32_t(bits & 0x7fffu) << 13;
  // The product moves the exponent's bias, for subnormals too; infinity needs all ones instead.
  const float finite = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(finite) | special |
                              uint32_t(bits & 0x8000u) << 16);
}

// No subnormal float is met on the way: some machines take long over one.
inline float e4m3_to_float(uint8_t bits) {
  const uint32_t magnitude = uint32_t(bits & 0x7fu) << 20;
  const float normal = std::bit_cast<float>(magnitude + (120u << 23));
  const float subnormal = std::bit_cast<float>(magnitude + (121u << 23)) - 0x1p-6f;
  const float finite = magnitude < 0x00800000u ? subnormal : normal;
  const uint32_t special = (bits & 0x7fu) == 0x7fu ? 0x7fc00000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(finite) | special |
                              uint32_t(bits & 0x80u) << 24);
}

inline uint16_t float_to_half(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t odd = magnitude >> 13 & 1u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  // Below 2^-14 the sum with 0.5 rounds at the spacing of subnormal halves.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const uint32_t infinite = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return uint16_t((magnitude >= 0x477ff000u ? infinite : finite) | (bits >> 16 & 0x8000u));
}

inline float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

inline uint16_t float_to_bfloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
}

}  // namespace tensorcraft::host
