// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// What operators without options of their own take.
struct ElementwiseOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// The same with those of leaky_relu().
struct LeakyReluOptions {
  float alpha = 0.01f;                   // slope below zero
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// The same with those of elu().
struct EluOptions {
  float alpha = 1.0f;                    // minus the limit far below zero
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// The same with those of swish().
struct SwishOptions {
  float beta = 1.0f;                     // factor of x in the sigmoid
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// The exact formula, or the one with tanh.
enum class GeluApproximation : int { none, tanh };

// The same with those of gelu().
struct GeluOptions {
  GeluApproximation approximate = GeluApproximation::none;  // which formula
  std::string_view variant = {};                            // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// The same with those of astype().
struct AstypeOptions {
  DType dtype = DType::float32;          // of the result
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// The same with those of fill().
struct FillOptions {
  double value = 0;                      // of every element
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
};

// Two inputs of any strides whose shapes broadcast by NumPy's rule: float32, float16, bfloat16,
// int32 or int64. Of two floats the wider is the result, of float16 and bfloat16 float32, of an
// integer and a float the float, of two integers the wider. Floats are computed in float32 and
// rounded once; integers wrap. out has the broadcast shape and may be an input of that shape.
// divide gives float32 for two integers; maximum and minimum give NaN where either input is NaN.
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

// One input of any strides: float32, float16 or bfloat16 (negative: int32 and int64 too). Computed
// in float32 and rounded once; NaN stays NaN. out has shape and dtype of x and may be x. silu,
// swish and gelu of -infinity are NaN, as their formulas say.
void negative(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor negative(const TensorView& x, const ElementwiseOptions& options = {});
void exp(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor exp(const TensorView& x, const ElementwiseOptions& options = {});
void tanh(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor tanh(const TensorView& x, const ElementwiseOptions& options = {});
void sigmoid(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor sigmoid(const TensorView& x, const ElementwiseOptions& options = {});
// x where x >= 0, else 0; the rest as negative().
void relu(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor relu(const TensorView& x, const ElementwiseOptions& options = {});
// x where x > 0, else alpha x; the rest as negative().
void leaky_relu(const TensorView& out, const TensorView& x, const LeakyReluOptions& options = {});
Tensor leaky_relu(const TensorView& x, const LeakyReluOptions& options = {});
// x where x > 0, else alpha (e^x - 1); the rest as negative().
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
// The same bits in another place: any dtype, any strides.
void copy(const TensorView& out, const TensorView& x, const ElementwiseOptions& options = {});
Tensor copy(const TensorView& x, const ElementwiseOptions& options = {});
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

template <>
struct tensorcraft::op::EnumNames<tensorcraft::GeluApproximation> {
  static constexpr std::array<std::string_view, 2> names = {"none", "tanh"};
};
