// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/quantize.cuh"
#include "tensorcraft/ops/quantize/params.h"

// The rule of every rung and of the host: scale = amax / largest, 1 if that is 0, infinite or NaN;
// an element is x / scale, a true division, rounded to nearest even and saturated.
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

// The Range of values as they lie in memory. Those of 2 bytes are compared two at a time, in the
// halves of a word: a quarter of the instructions.
template <class T, int kCount>
struct PackedRange {
  static constexpr bool kPairs = sizeof(T) == 2 && kCount > 1;
  Range range;
  uint32_t high = 0, low = 0;

  TC_DEVICE void widen(const Packed<T, kCount>& x, bool asymmetric) {
    if constexpr (kPairs) {
      for (const uint32_t word : x.words) {
        high = max_pair(high, asymmetric ? word : word & 0x7fff7fffu, T{});
        if (asymmetric) low = max_pair(low, word ^ 0x80008000u, T{});
      }
    } else {
      float values[kCount];
      to_floats(values, x);
      for (const float value : values) quantize::widen(range, value, asymmetric);
    }
  }
  TC_DEVICE Range result() const {
    if constexpr (kPairs)
      return {largest_half(high), largest_half(low)};
    else
      return range;
  }
  TC_DEVICE static float largest_half(uint32_t word) {
    float halves[2];
    to_floats(halves, Packed<T, 2>{word});
    return fmax_nan(halves[0], halves[1]);
  }
};

struct Scale {
  float scale, zero_point;
};

// The power of two at or above a scale that is finite; one below 2^-126 becomes that.
TC_DEVICE float power_of_two_above(float scale) {
  if (!(scale < kInfinity)) return scale;
  return bit_cast<float>((bit_cast<uint32_t>(scale) + 0x7fffffu) & 0x7f800000u);
}

// The width of a range over 255. It may be more than a float holds, then halves are added.
TC_DEVICE float scale_of_width(const Range& range) {
  const float width = range.high + range.low;
  if (width < kInfinity) return divided(width, 255);
  return divided(0.5f * range.high + 0.5f * range.low, 127.5);
}

template <class Q>
TC_DEVICE Scale scale_of(const Range& range, bool asymmetric, bool power_of_two) {
  float scale = asymmetric ? scale_of_width(range) : divided(range.high, kLargestCode<Q>);
  if (power_of_two) scale = power_of_two_above(scale);
  if (!(scale > 0 && scale < kInfinity)) return {1, 0};
  if (!asymmetric) return {scale, 0};
  // The lowest value becomes -128; a subnormal scale is too coarse for that.
  const float zero = rintf(range.low / scale) - 128.0f;
  return {scale, zero >= -128.0f && zero <= 127.0f ? zero : 0.0f};
}

// As Divisor, for x of 16 bits, in 3 instructions, and for any x and scale. The reciprocal is two
// floats, so a quotient is within 2^-41 of itself before it is rounded, and becomes the code that
// the rounded quotient becomes: that could differ only if x / divisor is as near to the middle
// between a float and its neighbour, beside the middle between two codes, and so short an x has no
// such quotient.
struct ShortDivisor {
  float factor, reciprocal, rest;

  TC_DEVICE explicit ShortDivisor(float by) {
    constexpr float below_one = 0.999999761581420898f, more = 2.27373675443232059e-13f;  // 2^-42
    factor = factor_towards_one(by);
    const float divisor = by * factor;
    // Below 1 / divisor, and what is missing rather too large: both parts have the divisor's sign,
    // so a zero keeps its own and infinities do not cancel.
    reciprocal = ptx::rcp_approx_ftz(divisor) * below_one;
    const float missing = fmaf(-divisor, reciprocal, 1.0f);
    rest = reciprocal;  // by 0, infinity or NaN: what the reciprocal alone gives
    if (!is_nan(missing)) rest *= fmaf(missing, missing, missing + more);
  }
  TC_DEVICE float divide(float x) const {
    const float moved = x * factor;
    return fmaf(moved, reciprocal, moved * rest);
  }
};

// The codes of neighbours of a tile, in the place of values that were T's. kMeasured: the scale is
// that of the largest of them, so that no quotient lies beyond twice the last code, and the
// conversion to a code saturates; or it is 1 because there is none.
template <class T, class Q, bool kMeasured>
struct Coder {
  static constexpr bool kShort = sizeof(T) == 2;
  Select<kShort, ShortDivisor, Divisor<Q>> divisor;
  float zero_point;

  TC_DEVICE explicit Coder(const Scale& s) : divisor(made(s)), zero_point(s.zero_point) {}
  template <int kCount>
  TC_DEVICE AlignedVector<Q, kCount> codes(float (&values)[kCount]) const {
    if constexpr (!kShort && kMeasured) {
      const bool may_be_infinite = divisor.divisor == 1.0f;
      for (float& v : values) v = may_be_infinite ? divisor.prepared(v) : v * divisor.factor;
    } else if constexpr (!kShort) {
      float largest = 0;
      for (const float v : values) largest = fmax_nan(largest, fabsf(v));
      if (!divisor.takes(largest))
        for (float& v : values) v = divisor.prepared(v);
    }
    for (float& v : values) v = divisor.divide(v);
    return to_codes<Q, !kShort>(values, zero_point);
  }

 private:
  TC_DEVICE static auto made(const Scale& s) {
    if constexpr (kShort)
      return ShortDivisor(s.scale);
    else
      return Divisor<Q>(s.scale, s.zero_point);
  }
};

// The scale that is given for a tile.
TC_DEVICE Scale given_scale(const Params& p, int64_t at) {
  return {p.scales[at], p.zero_points ? float(p.zero_points[at]) : 0.0f};
}

// What the threads of a tile leave behind: the first its scale, and each behind it a 0 that pads a
// column behind its last tile. Those are at most 3, and no tile has fewer than 4 threads.
TC_DEVICE void store_scale(const Params& p, const Scale& s, int64_t row_tile, int64_t col_tile,
                           int thread, bool asymmetric) {
  const int64_t row = row_tile + thread;
  const bool is_last = row_tile + 1 == p.tiles.row_tiles;
  if (thread > 0 && !(is_last && row < p.tiles.padded_rows)) return;
  const int64_t at = p.tiles.scale_at(row, col_tile);
  p.scales[at] = thread > 0 ? 0.0f : s.scale;
  if (asymmetric) p.zero_points[at] = thread > 0 ? 0 : int32_t(s.zero_point);
}

}  // namespace tensorcraft::kernel::quantize
