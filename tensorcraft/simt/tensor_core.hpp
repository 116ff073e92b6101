// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"

#include <cstdint>

// The arithmetic of mma.sync and wgmma. How the hardware rounds the sum of an instruction is not
// specified: it aligns the products to the largest and drops the bits below. The model here: every
// product is exact, the sum is formed in double and rounded once to float, to nearest even; a NaN
// is 0x7fffffff. Both agree bit for bit wherever all partial sums are exact in the hardware's
// width; else they differ by at most accumulation_error() times the sum of magnitudes.
namespace tensorcraft::simt {

// Of one instruction, relative to |c| + sum |a b|: each of its terms may lose what lies below the
// last bit that the hardware keeps, at least 23 bits under the largest term, 13 for 8-bit floats.
constexpr double accumulation_error(WgmmaType type) {
  const int terms = 32 / element_bytes(type) + 1;
  return terms * (element_bytes(type) == 1 ? 0x1p-13 : 0x1p-23);
}

// The value of an element's bits; tf32 is read as the upper 19 bits of a float.
double element_value(WgmmaType type, uint32_t bits);

// sums += A B with a of m x k, b of k x n and sums of m x n, each row-major and without gaps.
void multiply_add(const double* a, const double* b, double* sums, int m, int n, int k);

float round_sum(double sum);

}  // namespace tensorcraft::simt
