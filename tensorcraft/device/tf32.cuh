// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/math.cuh"

namespace tensorcraft {

// The nearest tf32, half-way values away from zero, as mma reads it, which ignores the low 13 bits:
// so half a step of tf32 is added, 2^-11 of the power of 2 below x. It is added towards zero, which
// keeps the largest numbers finite, where cvt.rna.tf32 gives an infinity, and takes as many
// instructions. Of numbers below 2^-126 the low bits are cut off.
TC_DEVICE uint32_t to_tf32(float x) {
  const float power = bit_cast<float>(bit_cast<uint32_t>(x) & 0xff800000u);
  return bit_cast<uint32_t>(ptx::fma_rz_f32(power, 0x1p-11f, x));
}

// Rounds to tf32 with the low bits 0, for code that rounds or subtracts it again.
inline constexpr uint32_t kTf32Bits = 0xffffe000u;
TC_DEVICE uint32_t tf32_of(float x) { return to_tf32(x) & kTf32Bits; }

}  // namespace tensorcraft
