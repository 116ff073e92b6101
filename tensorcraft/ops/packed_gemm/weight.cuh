// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/pack4.h"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/packed_gemm/params.h"

// What codes mean, by the type of their scale.
namespace tensorcraft::kernel::packed_gemm {

template <class S>
inline constexpr bool kIsInt4 = false;
template <>
inline constexpr bool kIsInt4<float> = true;
template <>
inline constexpr bool kIsInt4<f16> = true;
template <>
inline constexpr bool kIsInt4<bf16> = true;

TC_HOST_DEVICE float scale_value(uint8_t scale) { return e8m0_value(scale); }
template <class S>
TC_HOST_DEVICE float scale_value(S scale) {
  return float(scale);
}

// The scale of a group, and of int4 the code that means 0, or what code 0 means. tensor_scale comes
// last.
struct Scale {
  float factor;
  int zero;
  float offset = 0;
};
template <class S>
TC_HOST_DEVICE Scale scale_of(const Params& p, int64_t row, int64_t group) {
  const int64_t at = row * p.groups + group;
  const float factor = scale_value(static_cast<const S*>(p.scales)[at]);
  if (p.offsets) return {factor, 0, scale_value(static_cast<const S*>(p.offsets)[at])};
  return {factor, p.zeros ? int(p.zeros[at]) : 8};
}

// A weight, from its code in the lowest bits.
template <class S>
TC_HOST_DEVICE float weight_of(uint32_t code, const Scale& scale) {
  if constexpr (kIsInt4<S>)
    return fmaf(float(int(code & 15) - scale.zero), scale.factor, scale.offset);
  return e2m1_value(code & 15) * scale.factor;
}

}  // namespace tensorcraft::kernel::packed_gemm
