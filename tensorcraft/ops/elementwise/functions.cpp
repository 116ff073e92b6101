// SPDX-License-Identifier: Apache-2.0
// Operators that are an expression of one function: their kernels are those of expressions.
#include "tensorcraft/ops/elementwise/builder.hpp"
#include "tensorcraft/ops/elementwise/definitions.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"

#include <cmath>
#include <vector>

namespace tensorcraft {
namespace kernel::elementwise {
namespace {

using O = Operation;
using Values = std::span<const Value>;

const std::vector<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};
const std::vector<DType> kNumbers = {DType::float32, DType::float16, DType::bfloat16, DType::int32,
                                     DType::int64};
const std::vector<DType> kNumbersAndBool = {DType::float32, DType::float16, DType::bfloat16,
                                            DType::int32,   DType::int64,   DType::bool_};
const std::vector<DType> kTruth = {DType::bool_};

// What a function is: its value from the values of its inputs.
template <class Options>
struct Function {
  std::string_view name, summary, details;
  std::vector<op::Parameter> inputs;
  std::vector<DType> dtypes;
  std::string_view out_doc;
  Value (*build)(Builder&, Values, const Options&);
  std::vector<op::Option<Options>> options = {};
};

template <class Options>
Program program_of(const Function<Options>& f, std::span<const TensorView> in,
                   const Options& options) {
  for (size_t i = 0; i < (f.dtypes == kTruth ? 1 : in.size()); ++i)  // where: of its condition
    TensorMatcher::any_shape()
        .with_any_strides()
        .with_dtype(std::span<const DType>(f.dtypes))
        .verify(in[i], f.name, f.inputs[i].name);
  Program program;
  Builder builder(program);
  std::vector<Value> values;
  for (const TensorView& t : in) values.push_back(builder.input(t.dtype()));
  try {
    builder.finish(f.build(builder, values, options), std::nullopt);
  } catch (const Error& e) {
    fail(e.kind(), f.name, ": ", e.what());
  }
  return program;
}

template <class Options>
Dims shape_of(const Function<Options>& f, std::span<const TensorView> in) {
  return broadcast_shape(f.name, in, [&](size_t i) { return f.inputs[i].name; });
}

template <const auto& f, class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& options) {
  return {{"out", program_of(f, in, options).out(), shape_of(f, in)}};
}

template <const auto& f, class Options>
ExpressionProblem check(const op::Call<Options>& call) {
  return checked(f.name, program_of(f, call.inputs, call.options), call.out(), call.inputs,
                 shape_of(f, call.inputs));
}

template <const auto& f, class Options>
op::Definition<ExpressionProblem, Options> define(const Function<Options>&) {
  return {.name = f.name,
          .group = "elementwise",
          .summary = f.summary,
          .details = f.details,
          .inputs = f.inputs,
          .options = f.options,
          .out_doc = f.out_doc,
          .dtypes = f.dtypes,
          .in_place = true,
          .infer = infer<f, Options>,
          .check = check<f, Options>,
          .cost = expression_cost,
          .ladder = expression_ladder(),
          .host = expression_host()};
}

using Plain = ElementwiseOptions;
const std::vector<op::Parameter> kX = {{"x", "any shape and strides"}};
const std::vector<op::Parameter> kAB = {{"a", "the first operand"}, {"b", "the second operand"}};
constexpr std::string_view kLikeX = "shape and dtype of x";
constexpr std::string_view kBroadcast = "the broadcast shape of a and b, of their common dtype";
constexpr std::string_view kTruthOfBoth = "the broadcast shape of a and b, bool";
constexpr std::string_view kTruthOfX = "shape of x, bool";
constexpr std::string_view kCompared =
    "Shapes broadcast by NumPy's rule; the operands are compared in their common dtype, as add has "
    "it, floats in float32. NaN is equal to nothing, less than nothing and greater than nothing.";
constexpr std::string_view kLogical =
    "Shapes broadcast by NumPy's rule. Any number but 0 is true, NaN included.";

template <Operation operation>
Value unary(Builder& b, Values x, const Plain&) {
  return b.unary(operation, x[0]);
}
template <Operation operation>
Value compare(Builder& b, Values x, const Plain&) {
  return b.compare(operation, x[0], x[1]);
}
template <Operation operation>
Value swapped(Builder& b, Values x, const Plain&) {
  return b.compare(operation, x[1], x[0]);
}

// A bound in the dtype of x.
Value bound(std::string_view name, double value, DType dtype) {
  if (is_floating(dtype)) return {.number = value};
  if (value != std::trunc(value) || std::abs(value) >= 0x1p63)
    fail(ErrorKind::type, name, " must be a whole number of 64 bits where x is ", dtype, ", got ",
         value);
  return {.number = int64_t(value)};
}

Value clipped(Builder& b, Values in, const ClipOptions& o) {
  if (!o.min && !o.max) fail(ErrorKind::value, "give min, max or both");
  Value x = in[0];
  if (o.min) x = b.arithmetic(O::maximum, x, bound("min", *o.min, x.dtype));
  if (o.max) x = b.arithmetic(O::minimum, x, bound("max", *o.max, x.dtype));
  return x;
}

namespace definitions {

#define TC_FUNCTION(name, Options, ...)                        \
  const Function<Options> name##_function{#name, __VA_ARGS__}; \
  const auto name = define<name##_function>(name##_function);

TC_FUNCTION(abs, Plain, "The size of x.",
            "Exact; the smallest integer stays itself. NaN stays NaN.", kX, kNumbers, kLikeX,
            unary<O::abs>)
TC_FUNCTION(log, Plain, "The natural logarithm.",
            "Computed in float32 and rounded once to the dtype of x. NaN below 0, -infinity at 0.",
            kX, kFloats, kLikeX, unary<O::log>)
TC_FUNCTION(sqrt, Plain, "The square root.",
            "Computed in float32 and rounded once to the dtype of x. NaN below 0.", kX, kFloats,
            kLikeX, unary<O::sqrt>)
TC_FUNCTION(rsqrt, Plain, "1 / sqrt(x).",
            "Computed in float32 and rounded once to the dtype of x. NaN below 0, infinity at 0.",
            kX, kFloats, kLikeX, unary<O::rsqrt>)
TC_FUNCTION(round, Plain, "The nearest whole number, half-way cases to even.",
            "Exact. NaN and infinities stay.", kX, kFloats, kLikeX, unary<O::round>)
TC_FUNCTION(isnan, Plain, "Whether x is NaN.", "bool of the shape of x.", kX, kFloats, kTruthOfX,
            [](Builder& b, Values x, const Plain&) { return b.is_nan(x[0]); })
TC_FUNCTION(logical_not, Plain, "Whether x is 0.", "Any number but 0 is true, NaN included.", kX,
            kNumbersAndBool, kTruthOfX,
            [](Builder& b, Values x, const Plain&) { return b.logical_not(x[0]); })
TC_FUNCTION(pow, Plain, "a to the power b.",
            "As add. Floats as C's powf, a square as a product. Integers wrap; a negative exponent "
            "leaves the integer part: 1 or -1 of those two, else 0.",
            kAB, kNumbers, kBroadcast,
            [](Builder& b, Values x, const Plain&) { return b.arithmetic(O::pow, x[0], x[1]); })
TC_FUNCTION(equal, Plain, "Whether a == b.", kCompared, kAB, kNumbersAndBool, kTruthOfBoth,
            compare<O::equal>)
TC_FUNCTION(not_equal, Plain, "Whether a != b.", kCompared, kAB, kNumbersAndBool, kTruthOfBoth,
            compare<O::not_equal>)
TC_FUNCTION(less, Plain, "Whether a < b.", kCompared, kAB, kNumbers, kTruthOfBoth, compare<O::less>)
TC_FUNCTION(less_equal, Plain, "Whether a <= b.", kCompared, kAB, kNumbers, kTruthOfBoth,
            compare<O::less_equal>)
TC_FUNCTION(greater, Plain, "Whether a > b.", kCompared, kAB, kNumbers, kTruthOfBoth,
            swapped<O::less>)
TC_FUNCTION(greater_equal, Plain, "Whether a >= b.", kCompared, kAB, kNumbers, kTruthOfBoth,
            swapped<O::less_equal>)
TC_FUNCTION(logical_and, Plain, "Whether both are true.", kLogical, kAB, kNumbersAndBool,
            kTruthOfBoth,
            [](Builder& b, Values x, const Plain&) { return b.logical_and(x[0], x[1]); })
TC_FUNCTION(logical_or, Plain, "Whether one or both are true.", kLogical, kAB, kNumbersAndBool,
            kTruthOfBoth,
            [](Builder& b, Values x, const Plain&) { return b.logical_or(x[0], x[1]); })
TC_FUNCTION(
    where, Plain, "a where the condition holds, else b.",
    "All three broadcast by NumPy's rule. The condition is bool; a and b have one dtype, or "
    "are numbers that take their common one, as add has it.",
    (std::vector<op::Parameter>{
        {"condition", "bool"}, {"a", "where it holds"}, {"b", "elsewhere"}}),
    kTruth, "the broadcast shape, of the common dtype of a and b",
    [](Builder& b, Values x, const Plain&) { return b.where(x[0], x[1], x[2]); })
TC_FUNCTION(clip, ClipOptions, "x, at least min and at most max.",
            "Exact; the bounds are rounded to the dtype of x, where max is below min it wins. NaN "
            "stays NaN.",
            kX, kNumbers, kLikeX, clipped,
            {op::positional(op::option("min", &ClipOptions::min, "lowest value; None: no bound")),
             op::positional(op::option("max", &ClipOptions::max, "highest value; None: no bound"))})
#undef TC_FUNCTION

}  // namespace definitions
}  // namespace

op::OperatorList function_operators() {
  namespace d = definitions;
  return op::registered(d::abs, d::log, d::sqrt, d::rsqrt, d::round, d::isnan, d::pow, d::equal,
                        d::not_equal, d::less, d::less_equal, d::greater, d::greater_equal,
                        d::logical_and, d::logical_or, d::logical_not, d::where, d::clip);
}

}  // namespace kernel::elementwise

TC_DEFINE_UNARY(abs, ElementwiseOptions)
TC_DEFINE_UNARY(log, ElementwiseOptions)
TC_DEFINE_UNARY(sqrt, ElementwiseOptions)
TC_DEFINE_UNARY(rsqrt, ElementwiseOptions)
TC_DEFINE_UNARY(round, ElementwiseOptions)
TC_DEFINE_UNARY(isnan, ElementwiseOptions)
TC_DEFINE_UNARY(logical_not, ElementwiseOptions)
TC_DEFINE_UNARY(clip, ClipOptions)
TC_DEFINE_BINARY(pow)
TC_DEFINE_BINARY(equal)
TC_DEFINE_BINARY(not_equal)
TC_DEFINE_BINARY(less)
TC_DEFINE_BINARY(less_equal)
TC_DEFINE_BINARY(greater)
TC_DEFINE_BINARY(greater_equal)
TC_DEFINE_BINARY(logical_and)
TC_DEFINE_BINARY(logical_or)

void where(const TensorView& out, const TensorView& condition, const TensorView& a,
           const TensorView& b, const ElementwiseOptions& options) {
  op::run(kernel::elementwise::definitions::where, out, {condition, a, b}, options);
}
Tensor where(const TensorView& condition, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options) {
  return std::move(
      op::allocate(kernel::elementwise::definitions::where, {condition, a, b}, options)[0]);
}

}  // namespace tensorcraft
