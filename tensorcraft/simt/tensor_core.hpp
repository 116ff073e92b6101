// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"

#include <cstdint>

// The arithmetic of mma.sync and wgmma. How the hardware rounds the sum of an instruction is not
// specified: it aligns the products to the largest and drops the bits below. The model here: every
// product is exact, the sum is formed in double and rounded once to float, to nearest even; a NaN
// is 0x7fffffff. Both agree bit for bit wherever all partial sums are exact in the hardware's
// width; else they differ by at most kAccumulationError times the sum of magnitudes.
namespace tensorcraft::simt {

// Of one instruction, relative to |c| + sum |a b|: the hardware keeps at least 22 bits below the
// largest term, 13 for 8-bit floats, and has up to 33 terms.
constexpr double accumulation_error(WgmmaType type) {
  return element_bytes(type) == 1 ? 0x1p-9 : 0x1p-18;
}

// The value of an element's bits; tf32 is read as the upper 19 bits of a float.
double element_value(WgmmaType type, uint32_t bits);

// sums += A B with a of m x k, b of k x n and sums of m x n, each row-major and without gaps.
void multiply_add(const double* a, const double* b, double* sums, int m, int n, int k);

float round_sum(double sum);

}  // namespace tensorcraft::simt
