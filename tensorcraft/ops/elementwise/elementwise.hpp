// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/number.hpp"
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/gelu_approximation.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Operators without options of their own take these.
struct ElementwiseOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the option of leaky_relu() to ElementwiseOptions.
struct LeakyReluOptions {
  float alpha = 0.01f;                   // slope below zero
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the option of elu() to ElementwiseOptions.
struct EluOptions {
  float alpha = 1.0f;                    // minus the limit far below zero
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the option of swish() to ElementwiseOptions.
struct SwishOptions {
  float beta = 1.0f;                     // factor of x in the sigmoid
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the bounds of clip() to ElementwiseOptions; without a bound its result is a copy.
struct ClipOptions {
  std::optional<Number> min = {};        // lowest value
  std::optional<Number> max = {};        // highest value; below min it wins
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the option of gelu() to ElementwiseOptions.
struct GeluOptions {
  GeluApproximation approximate = GeluApproximation::none;  // which formula
  std::string_view variant = {};                            // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the option of astype() to ElementwiseOptions.
struct AstypeOptions {
  DType dtype = DType::float32;          // of the result
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Adds the option of fill() to ElementwiseOptions.
struct FillOptions {
  Number value = int64_t(0);             // of every element
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Two inputs of any strides whose shapes broadcast by NumPy's rule: float32, float16, bfloat16 or
// integers. Of two floats the wider is the result, of float16 and bfloat16 float32, of an integer
// and a float the float, of two integers the wider, int16 of int8 and uint8. Floats are computed in
// float32 and rounded once; integers wrap. out has the broadcast shape and may be an input of that
// shape. divide gives float32 for two integers; maximum and minimum give NaN if either input is
// NaN.
void add(const TensorView& out, const TensorView& a, const TensorView& b,
         const ElementwiseOptions& options = {});
Tensor add(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void subtract(const TensorView& out, const TensorView& a, const TensorView& b,
              const ElementwiseOptions& options = {});
Tensor subtract(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void multiply(const TensorView& out, const TensorView& a, const TensorView& b,
              const ElementwiseOptions& options = {});
Tensor multiply(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void divide(const TensorView& out, const TensorView& a, const TensorView& b,
            const ElementwiseOptions& options = {});
Tensor divide(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void maximum(const TensorView& out, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options = {});
Tensor maximum(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void minimum(const TensorView& out, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options = {});
Tensor minimum(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});

// a to the power b, otherwise as add: floats as powf, a square as a product; integers wrap, and of
// a negative exponent the integer part is left.
void pow(const TensorView& out, const TensorView& a, const TensorView& b,
         const ElementwiseOptions& options = {});
Tensor pow(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});

// As a // b and a % b in Python: the quotient rounded down, and a remainder with the sign of b. An
// integer divided by 0 gives 0 for both.
void floor_divide(const TensorView& out, const TensorView& a, const TensorView& b,
                  const ElementwiseOptions& options = {});
Tensor floor_divide(const TensorView& a, const TensorView& b,
                    const ElementwiseOptions& options = {});
void remainder(const TensorView& out, const TensorView& a, const TensorView& b,
               const ElementwiseOptions& options = {});
Tensor remainder(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
// Floats give these: the angle of the point (b, a), sqrt(a a + b b), log(e^a + e^b), the size of a
// with the sign of b, and the number beside a on the way to b in their common dtype.
void atan2(const TensorView& out, const TensorView& a, const TensorView& b,
           const ElementwiseOptions& options = {});
Tensor atan2(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void hypot(const TensorView& out, const TensorView& a, const TensorView& b,
           const ElementwiseOptions& options = {});
Tensor hypot(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void logaddexp(const TensorView& out, const TensorView& a, const TensorView& b,
               const ElementwiseOptions& options = {});
Tensor logaddexp(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void copysign(const TensorView& out, const TensorView& a, const TensorView& b,
              const ElementwiseOptions& options = {});
Tensor copysign(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void nextafter(const TensorView& out, const TensorView& a, const TensorView& b,
               const ElementwiseOptions& options = {});
Tensor nextafter(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
// These take integers bit by bit; the first three take bool too. A shift by all bits and more, or
// by less than 0, leaves 0, or -1 to the right of a negative number.
void bitwise_and(const TensorView& out, const TensorView& a, const TensorView& b,
                 const ElementwiseOptions& options = {});
Tensor bitwise_and(const TensorView& a, const TensorView& b,
                   const ElementwiseOptions& options = {});
void bitwise_or(const TensorView& out, const TensorView& a, const TensorView& b,
                const ElementwiseOptions& options = {});
Tensor bitwise_or(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void bitwise_xor(const TensorView& out, const TensorView& a, const TensorView& b,
                 const ElementwiseOptions& options = {});
Tensor bitwise_xor(const TensorView& a, const TensorView& b,
                   const ElementwiseOptions& options = {});
void bitwise_left_shift(const TensorView& out, const TensorView& a, const TensorView& b,
                        const ElementwiseOptions& options = {});
Tensor bitwise_left_shift(const TensorView& a, const TensorView& b,
                          const ElementwiseOptions& options = {});
void bitwise_right_shift(const TensorView& out, const TensorView& a, const TensorView& b,
                         const ElementwiseOptions& options = {});
Tensor bitwise_right_shift(const TensorView& a, const TensorView& b,
                           const ElementwiseOptions& options = {});

// Comparisons in the common dtype that add has; out is bool. NaN is unequal to everything and
// neither less nor greater. equal and not_equal also take two arrays of bool.
void equal(const TensorView& out, const TensorView& a, const TensorView& b,
           const ElementwiseOptions& options = {});
Tensor equal(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void not_equal(const TensorView& out, const TensorView& a, const TensorView& b,
               const ElementwiseOptions& options = {});
Tensor not_equal(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void less(const TensorView& out, const TensorView& a, const TensorView& b,
          const ElementwiseOptions& options = {});
Tensor less(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void less_equal(const TensorView& out, const TensorView& a, const TensorView& b,
                const ElementwiseOptions& options = {});
Tensor less_equal(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void greater(const TensorView& out, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options = {});
Tensor greater(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void greater_equal(const TensorView& out, const TensorView& a, const TensorView& b,
                   const ElementwiseOptions& options = {});
Tensor greater_equal(const TensorView& a, const TensorView& b,
                     const ElementwiseOptions& options = {});
// For numbers and bool: any number but 0 is true, NaN included; out is bool.
void logical_and(const TensorView& out, const TensorView& a, const TensorView& b,
                 const ElementwiseOptions& options = {});
Tensor logical_and(const TensorView& a, const TensorView& b,
                   const ElementwiseOptions& options = {});
void logical_or(const TensorView& out, const TensorView& a, const TensorView& b,
                const ElementwiseOptions& options = {});
Tensor logical_or(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {});
void logical_xor(const TensorView& out, const TensorView& a, const TensorView& b,
                 const ElementwiseOptions& options = {});
Tensor logical_xor(const TensorView& a, const TensorView& b,
                   const ElementwiseOptions& options = {});
void logical_not(const TensorView& out, const TensorView& x,
                 const ElementwiseOptions& options = {});
Tensor logical_not(const TensorView& x, const ElementwiseOptions& options = {});
// a if the condition, which is bool, holds, else b; the three broadcast. a and b have one dtype,
// which may be any, or a common one, as add has it.
void where(const TensorView& out, const TensorView& condition, const TensorView& a,
           const TensorView& b, const ElementwiseOptions& options = {});
Tensor where(const TensorView& condition, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options = {});

// One input of any strides: float32, float16 or bfloat16 (negative and abs: integers too).
// Computed in float32 and rounded once; NaN stays NaN. out has shape and dtype of x and may be x.
// silu, swish and gelu of -infinity are NaN, as their formulas say.
void negative(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor negative(const TensorView& x, const ElementwiseOptions& options = {});
void abs(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor abs(const TensorView& x, const ElementwiseOptions& options = {});
void log(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor log(const TensorView& x, const ElementwiseOptions& options = {});
void sqrt(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor sqrt(const TensorView& x, const ElementwiseOptions& options = {});
void rsqrt(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor rsqrt(const TensorView& x, const ElementwiseOptions& options = {});
// Half-way cases go to the even neighbour; integers stay.
void round(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor round(const TensorView& x, const ElementwiseOptions& options = {});
// out is bool.
void isnan(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor isnan(const TensorView& x, const ElementwiseOptions& options = {});
// 1 / x, powers and logarithms: expm1 is e^x - 1, log1p is log(1 + x), both exact near 0.
void reciprocal(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor reciprocal(const TensorView& x, const ElementwiseOptions& options = {});
void exp2(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor exp2(const TensorView& x, const ElementwiseOptions& options = {});
void expm1(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor expm1(const TensorView& x, const ElementwiseOptions& options = {});
void log2(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor log2(const TensorView& x, const ElementwiseOptions& options = {});
void log10(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor log10(const TensorView& x, const ElementwiseOptions& options = {});
void log1p(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor log1p(const TensorView& x, const ElementwiseOptions& options = {});
// The error function, and those of angles, which are in radians. NaN where a function has no value.
void erf(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor erf(const TensorView& x, const ElementwiseOptions& options = {});
void sin(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor sin(const TensorView& x, const ElementwiseOptions& options = {});
void cos(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor cos(const TensorView& x, const ElementwiseOptions& options = {});
void tan(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor tan(const TensorView& x, const ElementwiseOptions& options = {});
void asin(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor asin(const TensorView& x, const ElementwiseOptions& options = {});
void acos(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor acos(const TensorView& x, const ElementwiseOptions& options = {});
void atan(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor atan(const TensorView& x, const ElementwiseOptions& options = {});
void sinh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor sinh(const TensorView& x, const ElementwiseOptions& options = {});
void cosh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor cosh(const TensorView& x, const ElementwiseOptions& options = {});
void asinh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor asinh(const TensorView& x, const ElementwiseOptions& options = {});
void acosh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor acosh(const TensorView& x, const ElementwiseOptions& options = {});
void atanh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor atanh(const TensorView& x, const ElementwiseOptions& options = {});
// These take integers too: x itself, its sign as -1, 0 or 1, and x * x, which wraps.
void positive(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor positive(const TensorView& x, const ElementwiseOptions& options = {});
void sign(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor sign(const TensorView& x, const ElementwiseOptions& options = {});
void square(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor square(const TensorView& x, const ElementwiseOptions& options = {});
// Whole numbers: not above x, not below x, x without its fraction. Integers stay.
void floor(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor floor(const TensorView& x, const ElementwiseOptions& options = {});
void ceil(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor ceil(const TensorView& x, const ElementwiseOptions& options = {});
void trunc(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor trunc(const TensorView& x, const ElementwiseOptions& options = {});
// out is bool. No integer is infinite; signbit takes floats, -0 has one.
void isinf(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor isinf(const TensorView& x, const ElementwiseOptions& options = {});
void isfinite(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor isfinite(const TensorView& x, const ElementwiseOptions& options = {});
void signbit(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor signbit(const TensorView& x, const ElementwiseOptions& options = {});
// Each bit of an integer changed; of bool, the opposite.
void bitwise_invert(const TensorView& out, const TensorView& x,
                    const ElementwiseOptions& options = {});
Tensor bitwise_invert(const TensorView& x, const ElementwiseOptions& options = {});
// At least options.min, then at most options.max, in the dtype of x: integers too, whose bounds
// must be whole. NaN stays.
void clip(const TensorView& out, const TensorView& x, const ClipOptions& options = {});
Tensor clip(const TensorView& x, const ClipOptions& options = {});
void exp(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor exp(const TensorView& x, const ElementwiseOptions& options = {});
void tanh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor tanh(const TensorView& x, const ElementwiseOptions& options = {});
void sigmoid(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor sigmoid(const TensorView& x, const ElementwiseOptions& options = {});
// x if x >= 0, else 0; the rest as negative().
void relu(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor relu(const TensorView& x, const ElementwiseOptions& options = {});
// x if x > 0, else alpha x; the rest as negative().
void leaky_relu(const TensorView& out, const TensorView& x, const LeakyReluOptions& options = {});
Tensor leaky_relu(const TensorView& x, const LeakyReluOptions& options = {});
// x if x > 0, else alpha (e^x - 1); the rest as negative().
void elu(const TensorView& out, const TensorView& x, const EluOptions& options = {});
Tensor elu(const TensorView& x, const EluOptions& options = {});
// x sigmoid(x); the rest as negative().
void silu(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor silu(const TensorView& x, const ElementwiseOptions& options = {});
// x sigmoid(beta x); the rest as negative().
void swish(const TensorView& out, const TensorView& x, const SwishOptions& options = {});
Tensor swish(const TensorView& x, const SwishOptions& options = {});
// x P(normal < x), or its tanh form; the rest as negative().
void gelu(const TensorView& out, const TensorView& x, const GeluOptions& options = {});
Tensor gelu(const TensorView& x, const GeluOptions& options = {});
// Any dtype to any other. To a float rounds to nearest even, once; float8 saturates. Float to
// integer drops the fraction, saturates, and makes 0 of NaN; a narrower integer keeps the low bits;
// to bool is != 0. The same dtype is a copy.
void astype(const TensorView& out, const TensorView& x, const AstypeOptions& options = {});
Tensor astype(const TensorView& x, const AstypeOptions& options = {});
// options.value everywhere, converted as astype does. x gives shape, dtype and device; it is not
// read.
void fill(const TensorView& out, const TensorView& x, const FillOptions& options = {});
Tensor fill(const TensorView& x, const FillOptions& options = {});

}  // namespace tensorcraft
