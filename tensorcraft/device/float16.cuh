// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvt.cuh"

namespace tensorcraft {

// The 2-byte floats. They are storage: arithmetic happens in float, and both conversions are
// explicit, so no rounding hides. Default construction leaves the bits unset, as for float.

// IEEE binary16: 5 exponent and 10 mantissa bits, largest value 65504.
struct f16 {
  uint16_t bits;

  f16() = default;
  TC_HOST_DEVICE explicit f16(float x) : bits(ptx::cvt_rn_f16_f32(x)) {}
  TC_HOST_DEVICE explicit operator float() const { return ptx::cvt_f32_f16(bits); }
  TC_HOST_DEVICE static constexpr f16 from_bits(uint16_t bits) { return bit_cast<f16>(bits); }
};

// bfloat16: a float's upper half, 8 exponent and 7 mantissa bits.
struct bf16 {
  uint16_t bits;

  bf16() = default;
  TC_HOST_DEVICE explicit bf16(float x) : bits(ptx::cvt_rn_bf16_f32(x)) {}
  TC_HOST_DEVICE explicit operator float() const { return bit_cast<float>(uint32_t(bits) << 16); }
  TC_HOST_DEVICE static constexpr bf16 from_bits(uint16_t bits) { return bit_cast<bf16>(bits); }
};

static_assert(sizeof(f16) == 2 && alignof(f16) == 2);
static_assert(sizeof(bf16) == 2 && alignof(bf16) == 2);

}  // namespace tensorcraft
