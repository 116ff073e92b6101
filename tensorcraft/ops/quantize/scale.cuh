// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/ops/quantize/params.h"

// The rule of every rung and of the host: scale = amax / largest, 1 where that is 0; an element is
// x / scale, a true division, rounded to nearest even and saturated.
namespace tensorcraft::kernel::quantize {

// The largest of x and of -x, or both the largest of |x|. 0 is within every range, and a NaN stays.
struct Range {
  float high = 0, low = 0;
};

TC_DEVICE void widen(Range& range, float x, bool asymmetric) {
  if (asymmetric) {
    range.high = fmax_nan(range.high, x);
    range.low = fmax_nan(range.low, -x);
  } else {
    range.high = fmax_nan(range.high, fabsf(x));
  }
}

struct Scale {
  float scale, zero_point;
};

// The power of two at or above a scale that is finite; one below 2^-126 becomes that.
TC_DEVICE float power_of_two_above(float scale) {
  if (!(scale < kInfinity)) return scale;
  return bit_cast<float>((bit_cast<uint32_t>(scale) + 0x7fffffu) & 0x7f800000u);
}

template <class Q>
TC_DEVICE Scale scale_of(const Range& range, bool asymmetric, bool power_of_two) {
  float scale = asymmetric ? (range.high + range.low) / 255.0f : range.high / kLargestCode<Q>;
  if (power_of_two) scale = power_of_two_above(scale);
  if (scale == 0) scale = 1;
  if (!asymmetric) return {scale, 0};
  // The lowest value becomes -128; a NaN or an infinity leaves no zero point.
  const float zero = rintf(range.low / scale) - 128.0f;
  return {scale, zero >= -128.0f && zero <= 127.0f ? zero : 0.0f};
}

// x / divisor for many x, rounded as a division rounds: a reciprocal, then two corrections by the
// exact remainder, 9 instructions without a branch, where each division is more, and a thousand of
// them take seconds to compile. A divisor far from 1 is moved, and x with it, so that no remainder
// is too small for a float. A quotient that is 0, infinite or NaN is left as the product gives it.
struct Divisor {
  float factor, divisor, reciprocal, limit;

  TC_DEVICE explicit Divisor(float by) {
    constexpr float large = 1.15292150460684698e18f, far = 1.2676506002282294e30f;  // 2^60, 2^100
    const float magnitude = fabsf(by);
    factor = magnitude > large ? 1.0f / large : magnitude < 1.0f / large ? far : 1.0f;
    divisor = by * factor;
    reciprocal = 1.0f / divisor;
    limit = magnitude > 0 && magnitude < kInfinity ? far : 0.0f;
  }
  TC_DEVICE float divide(float x) const {
    const float moved = x * factor, first = moved * reciprocal;
    const float second = fmaf(fmaf(-first, divisor, moved), reciprocal, first);
    const float third = fmaf(fmaf(-second, divisor, moved), reciprocal, second);
    return fabsf(first) < limit ? copysignf(third, first) : first;
  }
};

// What x / scale becomes. int8 of a NaN is 0.
template <class Q>
TC_DEVICE Q rounded(float quotient, float zero_point) {
  if constexpr (kIsIntegerCode<Q>) {
    const float whole = rintf(quotient) + zero_point;
    return Q(is_nan(whole) ? 0.0f : fminf(fmaxf(whole, -128.0f), 127.0f));
  } else {
    return Q(quotient);
  }
}

// kCount neighbours; float8 in pairs, for which there is one instruction.
template <int kCount, class Q>
TC_DEVICE AlignedVector<Q, kCount> quantized(const float (&x)[kCount], const Divisor& by,
                                             float zero_point) {
  if constexpr (kIsIntegerCode<Q> || kCount == 1) {
    AlignedVector<Q, kCount> y;
    for (int e = 0; e < kCount; ++e) y[e] = rounded<Q>(by.divide(x[e]), zero_point);
    return y;
  } else {
    AlignedVector<uint16_t, kCount / 2> pairs;
    for (int e = 0; e < kCount; e += 2) {
      const float low = by.divide(x[e]), high = by.divide(x[e + 1]);
      if constexpr (kLargestCode<Q> == kLargestCode<e4m3>)
        pairs[e / 2] = ptx::cvt_rn_satfinite_e4m3x2_f32(high, low);
      else
        pairs[e / 2] = ptx::cvt_rn_satfinite_e5m2x2_f32(high, low);
    }
    return bit_cast<AlignedVector<Q, kCount>>(pairs);
  }
}

// The scale that is given for a tile.
TC_DEVICE Scale given_scale(const Params& p, int64_t at) {
  return {p.scales[at], p.zero_points ? float(p.zero_points[at]) : 0.0f};
}

// What a tile's first thread leaves behind: its scale, and 0 behind the last of a padded column.
TC_DEVICE void store_scale(const Params& p, const Scale& s, int64_t row_tile, int64_t col_tile) {
  p.scales[p.tiles.scale_at(row_tile, col_tile)] = s.scale;
  if (p.asymmetric) p.zero_points[p.tiles.scale_at(row_tile, col_tile)] = int32_t(s.zero_point);
  if (row_tile + 1 < p.tiles.row_tiles) return;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // at most 3, and seldom one
#endif
  for (int64_t i = p.tiles.row_tiles; i < p.tiles.padded_rows; ++i) {
    p.scales[p.tiles.scale_at(i, col_tile)] = 0;
    if (p.asymmetric) p.zero_points[p.tiles.scale_at(i, col_tile)] = 0;
  }
}

}  // namespace tensorcraft::kernel::quantize
