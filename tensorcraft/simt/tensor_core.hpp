// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"

#include <cstdint>

// The arithmetic of mma.sync and wgmma. How the hardware rounds the sum of an instruction is not
// specified: it aligns the products to the largest and drops the bits below. The model here: every
// product is exact, the sum is formed in double and rounded once to float, to nearest even; a NaN
// is 0x7fffffff. Both agree bit for bit wherever all partial sums are exact in the hardware's
// width; else they differ by at most accumulation_error() times the sum of magnitudes. Measured on
// an H200: the hardware aligns by the exponents as they are written, and a subnormal has that of
// the smallest normal number, so a subnormal operand counts as aligned_magnitude().
namespace tensorcraft::simt {

// The error of one instruction, relative to |c| + sum |a b|: each of its terms may lose what is
// below the last bit that the hardware keeps, at least 23 bits under the largest term, 13 for 8-bit
// floats.
constexpr double accumulation_error(WgmmaType type) {
  if (type == WgmmaType::s8) return 0;
  const int terms = 32 / element_bytes(type) + 1;
  return terms * (element_bytes(type) == 1 ? 0x1p-13 : 0x1p-23);
}

// Returns what an operand counts in the sum of magnitudes.
constexpr double aligned_magnitude(WgmmaType type, double operand) {
  const double magnitude = operand < 0 ? -operand : operand;
  const bool five_bits = type == WgmmaType::f16 || type == WgmmaType::e5m2;  // of exponent
  const double smallest = five_bits ? 0x1p-14 : type == WgmmaType::e4m3 ? 0x1p-6 : 0x1p-126;
  return magnitude == 0 || magnitude > smallest ? magnitude : smallest;
}

// The value of an element's bits; tf32 is read as the upper 19 bits of a float.
double element_value(WgmmaType type, uint32_t bits);

// sums += A B with a of m x k, b of k x n and sums of m x n, each row-major and without gaps.
void multiply_add(const double* a, const double* b, double* sums, int m, int n, int k);

float round_sum(double sum);

}  // namespace tensorcraft::simt
