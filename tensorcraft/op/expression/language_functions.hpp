// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/expression/builder.hpp"

// The functions of the language. Those with a summary are operators too (functions.cpp): a line
// here and a declaration make one. Host only.
namespace tensorcraft::expression {

// Says how a function treats its arguments.
enum class Form {
  real,            // of one float
  real_parameter,  // the same with a number
  number,          // of one number
  rounding,        // the same; integers stay
  positive,
  square,
  reciprocal,
  sign_bit,
  is_nan,
  is_infinite,
  is_finite,
  arithmetic,  // of two numbers
  two_floats,
  compare,
  compare_swapped,
  equality,  // the same, of bool too
  logical_not,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_invert,
  bitwise,  // of two integers or bool
  shift,    // of two integers
  where,
  clip,
};

struct Function {
  std::string_view name;
  Form form;
  Operation operation;
  std::string_view summary = {}, details = {};  // of an operator of this table
  double parameter = 0;                         // if it is not given
};

namespace texts {

inline constexpr std::string_view kReal =
    "Computed in float32 and rounded once to the dtype of x. NaN stays NaN.";
inline constexpr std::string_view kBeyond =
    "Computed in float32 and rounded once to the dtype of x. NaN beyond the range of the function.";
inline constexpr std::string_view kRounding = "Exact. NaN and infinities stay, integers too.";
inline constexpr std::string_view kCompared =
    "Shapes broadcast by NumPy's rule; the operands are compared in their common dtype, as add has "
    "it, floats in float32. NaN is equal to nothing, less than nothing and greater than nothing.";
inline constexpr std::string_view kLogical =
    "Shapes broadcast by NumPy's rule. Any number but 0 is true, NaN included.";
inline constexpr std::string_view kTwoFloats =
    "Shapes broadcast by NumPy's rule; dtypes as add. Computed in float32 and rounded once.";
inline constexpr std::string_view kBitwise =
    "Shapes broadcast by NumPy's rule. Of integers of any widths, as add, or of two arrays of "
    "bool.";
inline constexpr std::string_view kShift =
    "Shapes broadcast by NumPy's rule; dtypes as add. A shift by all bits and more, or by less "
    "than 0, leaves 0, or -1 to the right of a negative number.";

}  // namespace texts

inline constexpr Function kFunctions[] = {
    {"abs", Form::number, Operation::abs, "The size of x.",
     "Exact; the smallest integer stays itself. NaN stays NaN."},
    {"positive", Form::positive, Operation::copy, "+x.", "x itself, in new memory."},
    {"sign", Form::number, Operation::sign, "-1, 0 or 1, as x is below, at or above 0.",
     "Exact. NaN stays NaN."},
    {"square", Form::square, Operation::multiply, "x * x.",
     "Computed in float32 and rounded once to the dtype of x; integers wrap."},
    {"reciprocal", Form::reciprocal, Operation::divide, "1 / x.",
     "Computed in float32 and rounded once to the dtype of x; an infinity at 0."},
    {"sqrt", Form::real, Operation::sqrt, "The square root.",
     "Computed in float32 and rounded once to the dtype of x. NaN below 0."},
    {"rsqrt", Form::real, Operation::rsqrt, "1 / sqrt(x).",
     "Computed in float32 and rounded once to the dtype of x. NaN below 0, infinity at 0."},
    {"exp2", Form::real, Operation::exp2, "2^x.", texts::kReal},
    {"expm1", Form::real, Operation::expm1, "e^x - 1, exact near 0.", texts::kReal},
    {"log", Form::real, Operation::log, "The natural logarithm.",
     "Computed in float32 and rounded once to the dtype of x. NaN below 0, -infinity at 0."},
    {"log2", Form::real, Operation::log2, "The logarithm to base 2.",
     "Computed in float32 and rounded once to the dtype of x. NaN below 0, -infinity at 0."},
    {"log10", Form::real, Operation::log10, "The logarithm to base 10.",
     "Computed in float32 and rounded once to the dtype of x. NaN below 0, -infinity at 0."},
    {"log1p", Form::real, Operation::log1p, "log(1 + x), exact near 0.",
     "Computed in float32 and rounded once to the dtype of x. NaN below -1, -infinity at -1."},
    {"erf", Form::real, Operation::erf, "The error function.", texts::kReal},
    {"sin", Form::real, Operation::sin, "The sine of x radians.", texts::kBeyond},
    {"cos", Form::real, Operation::cos, "The cosine of x radians.", texts::kBeyond},
    {"tan", Form::real, Operation::tan, "The tangent of x radians.", texts::kBeyond},
    {"asin", Form::real, Operation::asin, "The angle in radians whose sine is x.", texts::kBeyond},
    {"acos", Form::real, Operation::acos, "The angle in radians whose cosine is x.",
     texts::kBeyond},
    {"atan", Form::real, Operation::atan, "The angle in radians whose tangent is x.", texts::kReal},
    {"sinh", Form::real, Operation::sinh, "The hyperbolic sine.", texts::kReal},
    {"cosh", Form::real, Operation::cosh, "The hyperbolic cosine.", texts::kReal},
    {"asinh", Form::real, Operation::asinh, "The inverse of the hyperbolic sine.", texts::kReal},
    {"acosh", Form::real, Operation::acosh, "The inverse of the hyperbolic cosine.",
     texts::kBeyond},
    {"atanh", Form::real, Operation::atanh, "The inverse of the hyperbolic tangent.",
     texts::kBeyond},
    {"round", Form::rounding, Operation::round, "The nearest whole number, half-way cases to even.",
     texts::kRounding},
    {"floor", Form::rounding, Operation::floor, "The nearest whole number that is not above x.",
     texts::kRounding},
    {"ceil", Form::rounding, Operation::ceil, "The nearest whole number that is not below x.",
     texts::kRounding},
    {"trunc", Form::rounding, Operation::trunc, "x without its fraction.", texts::kRounding},
    {"isnan", Form::is_nan, Operation::not_equal, "Whether x is NaN.",
     "bool of the shape of x; no integer is."},
    {"isinf", Form::is_infinite, Operation::equal, "Whether x is an infinity.",
     "bool of the shape of x; no integer is."},
    {"isfinite", Form::is_finite, Operation::less, "Whether x is neither NaN nor an infinity.",
     "bool of the shape of x; every integer is."},
    {"signbit", Form::sign_bit, Operation::less, "Whether x has a minus sign.",
     "bool of the shape of x; -0 and a NaN can have one."},
    {"pow", Form::arithmetic, Operation::pow, "a to the power b.",
     "As add. Floats as C's powf, a square as a product. Integers wrap; a negative exponent "
     "leaves the integer part: 1 or -1 of those two, else 0."},
    {"floor_divide", Form::arithmetic, Operation::floor_divide,
     "The largest whole number that is not above a / b.",
     "As add, and as a // b in Python. An integer divided by 0 is 0, a float an infinity or NaN."},
    {"remainder", Form::arithmetic, Operation::remainder, "What floor_divide leaves of a.",
     "As add, and as a % b in Python: with the sign of b. Of an integer and 0 it is 0, of a float "
     "and 0 NaN."},
    {"atan2", Form::two_floats, Operation::atan2, "The angle in radians of the point (b, a).",
     texts::kTwoFloats},
    {"hypot", Form::two_floats, Operation::hypot, "sqrt(a a + b b), without overflow between.",
     texts::kTwoFloats},
    {"logaddexp", Form::two_floats, Operation::logaddexp, "log(e^a + e^b), without overflow.",
     texts::kTwoFloats},
    {"copysign", Form::two_floats, Operation::copysign, "The size of a with the sign of b.",
     "Shapes broadcast by NumPy's rule; dtypes as add. Exact."},
    {"nextafter", Form::two_floats, Operation::nextafter,
     "The number beside a on the way to b, in their common dtype.",
     "Shapes broadcast by NumPy's rule; dtypes as add. b itself if it equals a."},
    {"equal", Form::equality, Operation::equal, "Whether a == b.", texts::kCompared},
    {"not_equal", Form::equality, Operation::not_equal, "Whether a != b.", texts::kCompared},
    {"less", Form::compare, Operation::less, "Whether a < b.", texts::kCompared},
    {"less_equal", Form::compare, Operation::less_equal, "Whether a <= b.", texts::kCompared},
    {"greater", Form::compare_swapped, Operation::less, "Whether a > b.", texts::kCompared},
    {"greater_equal", Form::compare_swapped, Operation::less_equal, "Whether a >= b.",
     texts::kCompared},
    {"logical_and", Form::logical_and, Operation::minimum, "Whether both are true.",
     texts::kLogical},
    {"logical_or", Form::logical_or, Operation::maximum, "Whether one or both are true.",
     texts::kLogical},
    {"logical_xor", Form::logical_xor, Operation::not_equal, "Whether one is true, and not both.",
     texts::kLogical},
    {"logical_not", Form::logical_not, Operation::equal, "Whether x is 0.",
     "Any number but 0 is true, NaN included."},
    {"bitwise_and", Form::bitwise, Operation::bitwise_and, "a & b.", texts::kBitwise},
    {"bitwise_or", Form::bitwise, Operation::bitwise_or, "a | b.", texts::kBitwise},
    {"bitwise_xor", Form::bitwise, Operation::bitwise_xor, "a ^ b.", texts::kBitwise},
    {"bitwise_invert", Form::bitwise_invert, Operation::bitwise_invert, "~x.",
     "Of integers every bit, of bool its opposite."},
    {"bitwise_left_shift", Form::shift, Operation::bitwise_left_shift, "a << b.", texts::kShift},
    {"bitwise_right_shift", Form::shift, Operation::bitwise_right_shift, "a >> b.", texts::kShift},
    {"where", Form::where, Operation::where, "a where the condition holds, else b.",
     "All three broadcast by NumPy's rule. The condition is bool; a and b have one dtype, or "
     "are numbers that take their common one, as add has it."},
    // Operators with kernels or options of their own, and names that only the language has.
    {"add", Form::arithmetic, Operation::add},
    {"subtract", Form::arithmetic, Operation::subtract},
    {"multiply", Form::arithmetic, Operation::multiply},
    {"divide", Form::arithmetic, Operation::divide},
    {"maximum", Form::arithmetic, Operation::maximum},
    {"max", Form::arithmetic, Operation::maximum},
    {"minimum", Form::arithmetic, Operation::minimum},
    {"min", Form::arithmetic, Operation::minimum},
    {"negative", Form::number, Operation::negative},
    {"exp", Form::real, Operation::exp},
    {"tanh", Form::real, Operation::tanh},
    {"sigmoid", Form::real, Operation::sigmoid},
    {"relu", Form::real, Operation::relu},
    {"leaky_relu", Form::real_parameter, Operation::leaky_relu, {}, {}, 0.01},
    {"elu", Form::real_parameter, Operation::elu, {}, {}, 1},
    {"silu", Form::real, Operation::silu},
    {"swish", Form::real_parameter, Operation::swish, {}, {}, 1},
    {"gelu", Form::real, Operation::gelu},
    {"gelu_tanh", Form::real, Operation::gelu_tanh},
    {"clip", Form::clip, Operation::minimum},
};

// The function of a name; null if there is none.
constexpr const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

// How many arguments it takes: one number of them, or one or two.
constexpr size_t max_arguments(Form form) {
  if (form == Form::where || form == Form::clip) return 3;
  const bool of_one = form == Form::real || (form >= Form::number && form <= Form::is_finite) ||
                      form == Form::logical_not || form == Form::bitwise_invert;
  return of_one ? 1 : 2;
}
constexpr size_t min_arguments(Form form) {
  return form == Form::real_parameter ? 1 : max_arguments(form);
}

// The function of that many values.
Value apply(Builder& builder, const Function& f, std::span<const Value> x);

}  // namespace tensorcraft::expression
