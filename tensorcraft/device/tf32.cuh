// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/ptx/cvt.cuh"

namespace tensorcraft {

// Is x a number whose nearest tf32 is one too? The largest numbers would become infinite.
TC_DEVICE bool rounds_to_tf32(float x) { return fabsf(x) < bit_cast<float>(0x7f7ff000u); }

// The nearest tf32 as mma reads it, which ignores the low 13 bits. What does not round keeps its
// bits: the largest numbers are cut off and stay finite. That is one comparison, which the
// conversion is predicated by.
TC_DEVICE uint32_t to_tf32(float x) {
  return rounds_to_tf32(x) ? ptx::cvt_rna_tf32_f32(x) : bit_cast<uint32_t>(x);
}

// The same with the low bits 0, for what rounds or subtracts it again.
inline constexpr uint32_t kTf32Bits = 0xffffe000u;
TC_DEVICE uint32_t tf32_of(float x) { return to_tf32(x) & kTf32Bits; }

}  // namespace tensorcraft
