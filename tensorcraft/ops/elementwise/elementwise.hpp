// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/gelu_approximation.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// What operators without options of their own take.
struct ElementwiseOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of leaky_relu().
struct LeakyReluOptions {
  float alpha = 0.01f;                   // slope below zero
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of elu().
struct EluOptions {
  float alpha = 1.0f;                    // minus the limit far below zero
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of swish().
struct SwishOptions {
  float beta = 1.0f;                     // factor of x in the sigmoid
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of clip(): at least one bound.
struct ClipOptions {
  std::optional<double> min = {};        // lowest value
  std::optional<double> max = {};        // highest value; below min it wins
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of gelu().
struct GeluOptions {
  GeluApproximation approximate = GeluApproximation::none;  // which formula
  std::string_view variant = {};                            // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of astype().
struct AstypeOptions {
  DType dtype = DType::float32;          // of the result
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The same with those of fill().
struct FillOptions {
  double value = 0;                      // of every element
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Two inputs of any strides whose shapes broadcast by NumPy's rule: float32, float16, bfloat16,
// int32 or int64. Of two floats the wider is the result, of float16 and bfloat16 float32, of an
// integer and a float the float, of two integers the wider. Floats are computed in float32 and
// rounded once; integers wrap. out has the broadcast shape and may be an input of that shape.
// divide gives float32 for two integers; maximum and minimum give NaN if either input is NaN.
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
void logical_not(const TensorView& out, const TensorView& x,
                 const ElementwiseOptions& options = {});
Tensor logical_not(const TensorView& x, const ElementwiseOptions& options = {});
// a if the condition, which is bool, holds, else b; the three broadcast. a and b have one dtype,
// which may be any, or a common one, as add has it.
void where(const TensorView& out, const TensorView& condition, const TensorView& a,
           const TensorView& b, const ElementwiseOptions& options = {});
Tensor where(const TensorView& condition, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options = {});

// One input of any strides: float32, float16 or bfloat16 (negative and abs: int32 and int64 too).
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
// Half-way cases go to the even neighbour.
void round(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor round(const TensorView& x, const ElementwiseOptions& options = {});
// out is bool.
void isnan(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor isnan(const TensorView& x, const ElementwiseOptions& options = {});
// At least options.min, then at most options.max, in the dtype of x: int32 and int64 too, whose
// bounds must be whole. NaN stays.
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
// Any dtype to any other. To a float rounds to nearest even by way of float32, float8 saturates.
// Float to integer drops the fraction, saturates, and makes 0 of NaN; a narrower integer keeps the
// low bits; to bool is != 0. The same dtype is a copy.
void astype(const TensorView& out, const TensorView& x, const AstypeOptions& options = {});
Tensor astype(const TensorView& x, const AstypeOptions& options = {});
// options.value everywhere, converted as astype does. x gives shape, dtype and device; it is not
// read.
void fill(const TensorView& out, const TensorView& x, const FillOptions& options = {});
Tensor fill(const TensorView& x, const FillOptions& options = {});

}  // namespace tensorcraft
