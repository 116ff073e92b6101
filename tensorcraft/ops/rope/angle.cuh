// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/index.h"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/rotation.cuh"
#include "tensorcraft/ops/rope/params.h"

// The angle of a pair is position * base^(-2i/D). In float32 it would be wrong by 2^-24 of itself,
// 0.008 at position 131,072, so frequency and whole turns are taken in double, about 10 operations,
// once for all heads of a token; what is left of a turn is a float.
namespace tensorcraft::kernel::rope {

// The nearest whole number, for |x| below 2^51.
TC_DEVICE double nearest(double x) {
  constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52 leaves no bits for a fraction
  return (x + shift) - shift;
}

// 2^x for |x| < 1000, within 2^-50 of itself: the series of e^t for |t| <= ln2 / 2.
TC_DEVICE double exp2_double(double x) {
  constexpr double ln2 = 0.693147180559945309417;
  const double whole = nearest(x), t = (x - whole) * ln2;
  double sum = 1;
  for (int k = 13; k > 0; --k) sum = 1 + sum * t * (1.0 / k);
  return sum * bit_cast<double>(uint64_t(int64_t(whole) + 1023) << 52);
}

// Rotation by a part of a turn in [-1/2, 1/2]: quarters first, then the series for |a| <= pi / 4.
TC_DEVICE Rotation rotation_of_turns(double turns) {
  const double quarters = nearest(4 * turns);
  const float a = float((turns - 0.25 * quarters) * 6.283185307179586477);
  const float z = a * a;
  const float s =
      a + a * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
  const float c =
      1.0f + z * (-0.5f +
                  z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320 + z * (-1.0f / 3628800)))));
  const int q = int(quarters) & 3;
  const float cos = q & 1 ? s : c, sin = q & 1 ? c : s;
  return {q == 1 || q == 2 ? -cos : cos, q >= 2 ? -sin : sin};
}

// Turns a position of pair i, of which each is log2_step below the one before as a power of two.
TC_DEVICE double frequency(int pair, double log2_step) {
  constexpr double turns_per_radian = 0.159154943091895335769;
  return exp2_double(pair * log2_step) * turns_per_radian;
}

TC_DEVICE Rotation rotation(int64_t position, double frequency) {
  const double turns = double(position) * frequency;
  return rotation_of_turns(turns - nearest(turns));
}

// Without positions they count from start_pos in every sequence, of which token is the `index`th.
template <class P>
TC_DEVICE int64_t position_of(const P& p, int64_t token, int64_t index) {
  if (!p.positions) return p.start_pos + index;
  const int64_t at = row_offset(p, P::kPositions, token);
  return integer_at(p.positions, at, p.wide_positions);
}

// A position that the caches lack rotates to NaN.
TC_DEVICE bool is_cached(const Params& p, int64_t position) {
  return position >= 0 && position < p.max_seq;
}

}  // namespace tensorcraft::kernel::rope
