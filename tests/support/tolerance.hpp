// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorcraft::test {

// The one tolerance table. An element may differ from the double reference by
//   relative * (|reference| + rms(reference))
// where `relative` is one rounding to the output dtype, plus float32 accumulation over `reduction`
// terms, of float8 as tensor cores do it, with 13 bits, plus the rounding of intermediate values if
// the operator states it: of attention of float8 that of the weights of the softmax. Of operands
// rounded to tf32 each product is off by a part of 2^-11 twice, of either sign.
struct Tolerance {
  double relative;
  double absolute = 0;
};

inline double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    case DType::float8_e4m3fn:
      return 0x1p-4;
    case DType::float8_e5m2:
      return 0x1p-3;
    case DType::float32:
      return 0x1p-24;
    default:
      return 0;  // integers and bool are exact
  }
}

inline Tolerance tolerance(DType out, DType compute, double reduction, bool rounds_inside,
                           bool rounds_to_tf32 = false) {
  const double accumulate = 0x1p-24 * (8 + 2 * std::sqrt(reduction));
  const double inside = rounds_inside ? 4 * unit_roundoff(compute) : 0;
  const bool is_float8 = compute == DType::float8_e4m3fn || compute == DType::float8_e5m2;
  const double products =
      is_float8 && reduction > 1 ? 0x1p-13 * (4 + std::sqrt(reduction / 32)) : 0;
  const double operands = rounds_to_tf32 ? 4 * 0x1p-11 : 0;
  return {is_floating(out) ? 1.01 * unit_roundoff(out) + accumulate + inside + products + operands
                           : 0};
}

// Allows 8-bit values to be `steps` away: a value that differs in its last bit may be on the other
// side of the middle between two codes.
inline Tolerance with_code_steps(Tolerance t, DType out, double steps) {
  if (dtype_bytes(out) != 1) return t;
  (is_floating(out) ? t.relative : t.absolute) +=
      steps * (is_floating(out) ? 2 * unit_roundoff(out) : 1);
  return t;
}

// Empty when every element is within the tolerance; else the worst one, and the largest errors of
// all. NaN equals NaN, an infinity equals itself, and nothing else is forgiven.
inline std::string compare(const std::vector<float>& got, const std::vector<float>& expected,
                           Tolerance tolerance) {
  if (got.size() != expected.size()) return "sizes differ";
  double sum = 0;
  size_t finite = 0;
  for (const float x : expected)
    if (std::isfinite(x)) sum += double(x) * x, ++finite;
  const double rms = finite ? std::sqrt(sum / double(finite)) : 0;
  double worst = 0, absolute = 0, relative = 0;
  size_t at = got.size();
  for (size_t i = 0; i < got.size(); ++i) {
    const double x = got[i], y = expected[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    const double allowed = tolerance.relative * (std::abs(y) + rms) + tolerance.absolute;
    const double error = std::abs(x - y), excess = error / std::max(allowed, 1e-300);
    absolute = std::isnan(error) ? INFINITY : std::max(absolute, error);
    relative = std::isnan(error) || y == 0 ? INFINITY : std::max(relative, error / std::abs(y));
    if (!(excess <= std::max(worst, 1.0))) {
      at = i;
      worst = std::isnan(excess) ? INFINITY : excess;
    }
  }
  if (at == got.size()) return {};
  return "element " + std::to_string(at) + " is " + std::to_string(got[at]) + ", expected " +
         std::to_string(expected[at]) + " (" + std::to_string(worst) + " times the tolerance " +
         std::to_string(tolerance.relative) + "); max abs error " + std::to_string(absolute) +
         ", max rel error " + std::to_string(relative);
}

}  // namespace tensorcraft::test
