// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/packed.cuh"

// Rows of bfloat16 as float16 of the same relative size: each row times a power of two that brings
// its largest element near the end of float16's range. Elements are lost below 2^-39 of the
// largest.
namespace tensorcraft {

// The largest magnitude of two elements and `so_far`, as the bits of a bfloat16.
TC_DEVICE uint32_t largest_bits(uint32_t so_far, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 16) {
    const uint32_t x = word >> shift & 0x7fff;
    so_far = x > so_far ? x : so_far;
  }
  return so_far;
}

// The power of two for a row with that largest magnitude, and its inverse.
struct RowUnit {
  float factor, inverse;
  TC_DEVICE explicit RowUnit(uint32_t largest) {
    constexpr uint32_t kTopExponent = 127 + 14;  // float16 ends below 2^16
    uint32_t exponent = largest >> 7;
    if (exponent < 15) exponent = 15;
    factor = bit_cast<float>((127 + kTopExponent - exponent) << 23);
    inverse = bit_cast<float>((127 - kTopExponent + exponent) << 23);
  }
};

// Two elements of such a row.
TC_DEVICE uint32_t in_unit(uint32_t word, float factor) {
  return pack_pair(detail::half_of(word, false, bf16{}) * factor,
                   detail::half_of(word, true, bf16{}) * factor, f16{});
}

}  // namespace tensorcraft
