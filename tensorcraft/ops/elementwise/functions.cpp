// SPDX-License-Identifier: Apache-2.0
// Operators that are an expression of one function: their kernels are those of expressions.
#include "tensorcraft/ops/elementwise/definitions.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/op/expression/language_functions.hpp"
#include "tensorcraft/device/expression/operation.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace kernel::elementwise {
namespace {

using Inputs = std::span<const TensorView>;

const std::vector<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};
const std::vector<DType> kIntegers = {DType::int8, DType::int16, DType::int32, DType::int64,
                                      DType::uint8};
const std::vector<DType> kTruth = {DType::bool_};

std::vector<DType> both(std::vector<DType> a, const std::vector<DType>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const std::vector<DType> kNumbers = both(kFloats, kIntegers);
const std::vector<DType> kNumbersAndBool = both(kNumbers, kTruth);
const std::vector<DType> kIntegersAndBool = both(kIntegers, kTruth);

const std::vector<op::Parameter> kX = {{"x", "any shape and strides"}};
const std::vector<op::Parameter> kAB = {{"a", "the first operand"}, {"b", "the second operand"}};
const std::vector<op::Parameter> kChoice = {
    {"condition", op::takes(op::kBool, "%")}, {"a", "where it holds"}, {"b", "elsewhere"}};

// The form of a function decides what its operator takes and gives.
const std::vector<op::Parameter>& inputs_of(Form form) {
  return form == Form::where ? kChoice : max_arguments(form) == 1 ? kX : kAB;
}

const std::vector<DType>& dtypes_of(Form form) {
  switch (form) {
    case Form::real:
    case Form::reciprocal:
    case Form::sign_bit:
    case Form::two_floats:
      return kFloats;
    case Form::equality:
    case Form::logical_not:
    case Form::logical_and:
    case Form::logical_or:
    case Form::logical_xor:
      return kNumbersAndBool;
    case Form::bitwise_invert:
    case Form::bitwise:
      return kIntegersAndBool;
    case Form::shift:
      return kIntegers;
    case Form::where:
      return kTruth;  // of its condition
    default:
      return kNumbers;
  }
}

std::string_view out_doc_of(Form form) {
  const bool is_test =
      form == Form::logical_not || (form >= Form::sign_bit && form <= Form::is_finite);
  if (is_test) return "shape of x, bool";
  if (form == Form::where) return "the broadcast shape, of the common dtype of a and b";
  if (max_arguments(form) == 1) return "shape and dtype of x";
  return form >= Form::compare && form <= Form::logical_xor
             ? "the broadcast shape of a and b, bool"
             : "the broadcast shape of a and b, of their common dtype";
}

void check_dtype(std::string_view op, const op::Parameter& input, const TensorView& t,
                 std::span<const DType> dtypes) {
  TensorMatcher::any_shape().with_any_strides().with_dtype(dtypes).verify(t, op, input.name);
}

// A program of one result, which build() makes of the inputs' values.
template <class Build>
Program program_of(std::string_view op, Inputs in, Build&& build) {
  Program program;
  Builder builder(program);
  std::array<Value, 3> values;
  for (size_t i = 0; i < in.size(); ++i) values[i] = builder.input(in[i].dtype());
  try {
    builder.finish(build(builder, std::span(values).first(in.size())), std::nullopt);
  } catch (const Error& e) {
    fail(e.kind(), op, ": ", e.what());
  }
  return program;
}

Program program_of(const Function& f, Inputs in) {
  const auto& inputs = inputs_of(f.form);
  for (size_t i = 0; i < (f.form == Form::where ? 1 : in.size()); ++i)
    check_dtype(f.name, inputs[i], in[i], dtypes_of(f.form));
  return program_of(f.name, in, [&](Builder& builder, std::span<const Value> values) {
    return apply(builder, f, values);
  });
}

Dims shape_of(const Function& f, Inputs in) {
  const auto& inputs = inputs_of(f.form);
  return broadcast_shape(f.name, in, [&](size_t i) { return inputs[i].name; });
}

// The operators of the table are its first entries.
constexpr size_t kOperators = [] {
  size_t count = 0;
  while (!kFunctions[count].summary.empty()) ++count;
  return count;
}();

template <size_t i>
std::vector<op::OutputSpec> infer(Inputs in, const ElementwiseOptions&) {
  return {{"out", program_of(kFunctions[i], in).out(), shape_of(kFunctions[i], in)}};
}

template <size_t i>
ExpressionProblem check(const op::Call<ElementwiseOptions>& call) {
  constexpr const Function& f = kFunctions[i];
  return checked(f.name, program_of(f, call.inputs), call.out(), call.inputs,
                 shape_of(f, call.inputs));
}

template <size_t i>
op::Definition<ExpressionProblem, ElementwiseOptions> define() {
  constexpr const Function& f = kFunctions[i];
  return {.name = f.name,
          .group = "elementwise",
          .summary = f.summary,
          .details = f.details,
          .inputs = inputs_of(f.form),
          .out_doc = out_doc_of(f.form),
          .dtypes = dtypes_of(f.form),
          .in_place = true,
          .infer = infer<i>,
          .check = check<i>,
          .cost = expression_cost,
          .ladder = expression_ladder(),
          .host = expression_host()};
}

template <size_t... i>
auto define_all(std::index_sequence<i...>) {
  return std::array{define<i>()...};
}
const auto kDefinitions = define_all(std::make_index_sequence<kOperators>());

// The definition of a name, which is in the table.
consteval size_t index_of(std::string_view name) {
  return size_t(find_function(name) - std::begin(kFunctions));
}

// A bound in the dtype of x.
Value bound(std::string_view name, const Number& number, DType dtype) {
  const double* real = std::get_if<double>(&number);
  if (!real || is_floating(dtype)) return {.number = number};
  if (*real != std::trunc(*real) || std::abs(*real) >= 0x1p63)
    fail(ErrorKind::type, name, " must be a whole number of 64 bits where x is ", dtype, ", got ",
         *real);
  return {.number = int64_t(*real)};
}

Program clip_program(Inputs in, const ClipOptions& o) {
  check_dtype("clip", kX[0], in[0], kNumbers);
  return program_of("clip", in, [&](Builder& b, std::span<const Value> values) {
    Value x = values[0];
    if (o.min) x = b.arithmetic(Operation::maximum, x, bound("min", *o.min, x.dtype));
    if (o.max) x = b.arithmetic(Operation::minimum, x, bound("max", *o.max, x.dtype));
    return x;
  });
}

ExpressionProblem check_clip(const op::Call<ClipOptions>& call) {
  return checked("clip", clip_program(call.inputs, call.options), call.out(), call.inputs,
                 call.in().shape());
}

const op::Definition<ExpressionProblem, ClipOptions> kClip{
    .name = "clip",
    .group = "elementwise",
    .summary = "x, at least min and at most max; without both a copy.",
    .details =
        "Exact; the bounds are rounded to the dtype of x, where max is below min it wins. "
        "NaN stays NaN.",
    .inputs = kX,
    .options =
        {op::positional(op::option("min", &ClipOptions::min, "lowest value; None: no bound")),
         op::positional(op::option("max", &ClipOptions::max, "highest value; None: no bound"))},
    .out_doc = "shape and dtype of x",
    .dtypes = kNumbers,
    .in_place = true,
    .check = check_clip,
    .cost = expression_cost,
    .ladder = expression_ladder(),
    .host = expression_host()};

}  // namespace

op::OperatorList function_operators() {
  op::OperatorList all;
  for (const auto& definition : kDefinitions) all.push_back(op::registered(definition)[0]);
  all.push_back(op::registered(kClip)[0]);
  return all;
}

}  // namespace kernel::elementwise

#define TC_FUNCTION(name) kernel::elementwise::kDefinitions[kernel::elementwise::index_of(#name)]
#define TC_UNARY_FUNCTION(name, ...)                                                         \
  void name(const TensorView& out, const TensorView& x, const ElementwiseOptions& options) { \
    op::run(TC_FUNCTION(name), out, {x}, options);                                           \
  }                                                                                          \
  Tensor name(const TensorView& x, const ElementwiseOptions& options) {                      \
    return std::move(op::allocate(TC_FUNCTION(name), {x}, options)[0]);                      \
  }
#define TC_BINARY_FUNCTION(name)                                                             \
  void name(const TensorView& out, const TensorView& a, const TensorView& b,                 \
            const ElementwiseOptions& options) {                                             \
    op::run(TC_FUNCTION(name), out, {a, b}, options);                                        \
  }                                                                                          \
  Tensor name(const TensorView& a, const TensorView& b, const ElementwiseOptions& options) { \
    return std::move(op::allocate(TC_FUNCTION(name), {a, b}, options)[0]);                   \
  }

TC_C_FUNCTIONS(TC_UNARY_FUNCTION)
TC_UNARY_FUNCTION(abs)
TC_UNARY_FUNCTION(positive)
TC_UNARY_FUNCTION(sign)
TC_UNARY_FUNCTION(square)
TC_UNARY_FUNCTION(reciprocal)
TC_UNARY_FUNCTION(sqrt)
TC_UNARY_FUNCTION(rsqrt)
TC_UNARY_FUNCTION(log)
TC_UNARY_FUNCTION(round)
TC_UNARY_FUNCTION(floor)
TC_UNARY_FUNCTION(ceil)
TC_UNARY_FUNCTION(trunc)
TC_UNARY_FUNCTION(isnan)
TC_UNARY_FUNCTION(isinf)
TC_UNARY_FUNCTION(isfinite)
TC_UNARY_FUNCTION(signbit)
TC_UNARY_FUNCTION(logical_not)
TC_UNARY_FUNCTION(bitwise_invert)
TC_BINARY_FUNCTION(pow)
TC_BINARY_FUNCTION(floor_divide)
TC_BINARY_FUNCTION(remainder)
TC_BINARY_FUNCTION(atan2)
TC_BINARY_FUNCTION(hypot)
TC_BINARY_FUNCTION(logaddexp)
TC_BINARY_FUNCTION(copysign)
TC_BINARY_FUNCTION(nextafter)
TC_BINARY_FUNCTION(equal)
TC_BINARY_FUNCTION(not_equal)
TC_BINARY_FUNCTION(less)
TC_BINARY_FUNCTION(less_equal)
TC_BINARY_FUNCTION(greater)
TC_BINARY_FUNCTION(greater_equal)
TC_BINARY_FUNCTION(logical_and)
TC_BINARY_FUNCTION(logical_or)
TC_BINARY_FUNCTION(logical_xor)
TC_BINARY_FUNCTION(bitwise_and)
TC_BINARY_FUNCTION(bitwise_or)
TC_BINARY_FUNCTION(bitwise_xor)
TC_BINARY_FUNCTION(bitwise_left_shift)
TC_BINARY_FUNCTION(bitwise_right_shift)

void where(const TensorView& out, const TensorView& condition, const TensorView& a,
           const TensorView& b, const ElementwiseOptions& options) {
  op::run(TC_FUNCTION(where), out, {condition, a, b}, options);
}
Tensor where(const TensorView& condition, const TensorView& a, const TensorView& b,
             const ElementwiseOptions& options) {
  return std::move(op::allocate(TC_FUNCTION(where), {condition, a, b}, options)[0]);
}

void clip(const TensorView& out, const TensorView& x, const ClipOptions& options) {
  op::run(kernel::elementwise::kClip, out, {x}, options);
}
Tensor clip(const TensorView& x, const ClipOptions& options) {
  return std::move(op::allocate(kernel::elementwise::kClip, {x}, options)[0]);
}

}  // namespace tensorcraft
