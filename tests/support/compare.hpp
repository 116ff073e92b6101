// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>

namespace tensorcraft::test {

struct ToleranceConfig {
  double rtol = 1e-5;
  double atol = 1e-8;

  // Elementwise operators are held to this.
  static ToleranceConfig of(DType dtype) {
    switch (dtype) {
      case DType::float32:
        return {};
      case DType::float16:
        return {1e-3, 1e-3};
      case DType::bfloat16:
        return {1e-2, 1e-2};
      default:
        fail(ErrorKind::value, "ToleranceConfig: there is none of ", dtype);
    }
  }
};

// The result of a comparison; prints as one sentence for a failing test.
struct Comparison {
  int64_t mismatches = 0;
  int64_t index = -1;  // of the first mismatch, or of the largest absolute error where all match
  double got = 0, expected = 0;  // the values there
  double max_abs_error = 0, max_rel_error = 0;
  int64_t max_abs_index = -1;

  explicit operator bool() const { return mismatches == 0; }
};

inline std::ostream& operator<<(std::ostream& out, const Comparison& c) {
  return out << c.mismatches << " mismatches; at index " << c.index << " got " << c.got
             << ", expected " << c.expected << "; max abs error " << c.max_abs_error
             << " (at index " << c.max_abs_index << "), max rel error " << c.max_rel_error;
}

// |got - expected| <= atol + rtol |expected|. A NaN equals nothing, another NaN included; an
// infinity equals only itself.
inline bool is_close(double got, double expected, ToleranceConfig tolerance = {}) {
  if (std::isnan(got) || std::isnan(expected)) return false;
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= tolerance.atol + tolerance.rtol * std::fabs(expected);
}

// The narrow floats convert to float alone.
template <class T>
double to_double(T x) {
  if constexpr (requires { double(x); }) {
    return double(x);
  } else {
    return double(float(x));
  }
}

// Compares n elements of any two types.
template <class A, class B>
Comparison compare(const A* got, const B* expected, int64_t n, ToleranceConfig tolerance = {}) {
  Comparison result;
  for (int64_t i = 0; i < n; ++i) {
    const double g = to_double(got[i]), e = to_double(expected[i]);
    // Equal infinities have no error; their difference would be NaN.
    double error = g == e ? 0 : std::fabs(g - e);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const bool close = is_close(g, e, tolerance);
    const bool first_mismatch = !close && result.mismatches == 0;
    result.mismatches += !close;
    if (error > 0)
      result.max_rel_error = std::fmax(
          result.max_rel_error, std::isinf(error) || e == 0 ? HUGE_VAL : error / std::fabs(e));
    const bool worst = result.max_abs_index < 0 || error > result.max_abs_error;
    if (worst) {
      result.max_abs_error = error;
      result.max_abs_index = i;
    }
    if (first_mismatch || (worst && result.mismatches == 0)) {
      result.index = i;
      result.got = g;
      result.expected = e;
    }
  }
  return result;
}

template <class A, class B>
bool allclose(const A* a, const B* b, int64_t n, double rtol, double atol) {
  return bool(compare(a, b, n, {rtol, atol}));
}

// Writes a line for a reader likewise: whether all match, and the largest difference.
template <class A, class B>
bool validate_kernel_correctness(const A* got, const B* expected, int64_t n,
                                 ToleranceConfig tolerance, std::ostream& out) {
  const Comparison c = compare(got, expected, n, tolerance);
  out << (c ? "Validation passed" : "Validation failed") << ". Max difference: " << c.max_abs_error
      << '\n';
  return bool(c);
}

}  // namespace tensorcraft::test
