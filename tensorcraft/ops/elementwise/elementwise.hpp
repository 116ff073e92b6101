// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

struct ElementwiseOptions {
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

struct LeakyReluOptions {
  float alpha = 0.01f;  // slope below zero
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

struct EluOptions {
  float alpha = 1.0f;  // minus the limit far below zero
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

struct SwishOptions {
  float beta = 1.0f;
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

enum class GeluApproximation : int { none, tanh };

struct GeluOptions {
  GeluApproximation approximate = GeluApproximation::none;
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

struct AstypeOptions {
  DType dtype = DType::float32;  // of the result
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

struct FillOptions {
  double value = 0;
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

// Two inputs of any strides whose shapes broadcast by NumPy's rule: float32, float16, bfloat16,
// int32 or int64. Of two floats the wider is the result, of float16 and bfloat16 float32, of an
// integer and a float the float, of two integers the wider. Floats are computed in float32 and
// rounded once; integers wrap. out has the broadcast shape and may be an input of that shape.
// divide gives float32 for two integers; maximum and minimum give NaN where either input is NaN.
#define TC_BINARY(op)                                                      \
  void op(const TensorView& out, const TensorView& a, const TensorView& b, \
          const ElementwiseOptions& options = {});                         \
  Tensor op(const TensorView& a, const TensorView& b, const ElementwiseOptions& options = {})
TC_BINARY(add);
TC_BINARY(subtract);
TC_BINARY(multiply);
TC_BINARY(divide);
TC_BINARY(maximum);
TC_BINARY(minimum);
#undef TC_BINARY

// One input of any strides: float32, float16 or bfloat16 (negative: int32 and int64 too). Computed
// in float32 and rounded once; NaN stays NaN. out has shape and dtype of x and may be x. silu,
// swish and gelu of -infinity are NaN, as their formulas say.
#define TC_UNARY(op, Options)                                                       \
  void op(const TensorView& out, const TensorView& x, const Options& options = {}); \
  Tensor op(const TensorView& x, const Options& options = {})
TC_UNARY(negative, ElementwiseOptions);
TC_UNARY(exp, ElementwiseOptions);
TC_UNARY(tanh, ElementwiseOptions);
TC_UNARY(sigmoid, ElementwiseOptions);
TC_UNARY(relu, ElementwiseOptions);      // x where x >= 0, else 0
TC_UNARY(leaky_relu, LeakyReluOptions);  // x where x > 0, else alpha x
TC_UNARY(elu, EluOptions);               // x where x > 0, else alpha (e^x - 1)
TC_UNARY(silu, ElementwiseOptions);      // x sigmoid(x)
TC_UNARY(swish, SwishOptions);           // x sigmoid(beta x)
TC_UNARY(gelu, GeluOptions);             // x P(normal < x), or its tanh form
// The same bits in another place: any dtype, any strides.
TC_UNARY(copy, ElementwiseOptions);
// Any dtype to any other. To a float rounds to nearest even by way of float32, float8 saturates.
// Float to integer drops the fraction, saturates, and makes 0 of NaN; a narrower integer keeps the
// low bits; to bool is != 0. The same dtype is a copy.
TC_UNARY(astype, AstypeOptions);
// options.value everywhere, converted as astype does. x gives shape, dtype and device; it is not
// read.
TC_UNARY(fill, FillOptions);
#undef TC_UNARY

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::GeluApproximation> {
  static constexpr std::array<std::string_view, 2> names = {"none", "tanh"};
};
