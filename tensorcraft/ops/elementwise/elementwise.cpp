// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/elementwise.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/elementwise/builder.hpp"
#include "tensorcraft/ops/elementwise/functions.hpp"
#include "tensorcraft/ops/elementwise/table.hpp"

#include <algorithm>

namespace tensorcraft {
namespace kernel::elementwise {
namespace {

const std::vector<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};
const std::vector<DType> kNumbers = {DType::float32, DType::float16, DType::bfloat16, DType::int32,
                                     DType::int64};
const std::vector<DType> kAll = {DType::float32,       DType::float16,     DType::bfloat16,
                                 DType::float8_e4m3fn, DType::float8_e5m2, DType::int8,
                                 DType::int16,         DType::int32,       DType::int64,
                                 DType::uint8,         DType::bool_};

struct Result {
  DType dtype;
  Dims shape;
};

void check_number(std::string_view op, std::string_view arg, const TensorView& t) {
  op::check_dtype(op, arg, t,
                  {DType::float32, DType::float16, DType::bfloat16, DType::int32, DType::int64});
}

Result result_of(Operation operation, const TensorView& a, const TensorView& b) {
  check_number(name(operation), "a", a);
  check_number(name(operation), "b", b);
  const DType dtype = promoted(a.dtype(), b.dtype());
  const bool divides = operation == Operation::divide && !is_floating(dtype);
  try {
    return {divides ? DType::float32 : dtype, broadcast_shapes(a.shape(), b.shape())};
  } catch (const Error& e) {
    fail(e.kind(), name(operation), ": a and b: ", e.what());
  }
}

template <Operation operation>
std::vector<op::OutputSpec> infer_binary(std::span<const TensorView> in,
                                         const ElementwiseOptions&) {
  const auto [dtype, shape] = result_of(operation, in[0], in[1]);
  return {{"out", dtype, shape}};
}

template <Operation operation>
Problem check_binary(const op::Call<ElementwiseOptions>& call) {
  const TensorView &a = call.in(0), &b = call.in(1);
  const auto [dtype, shape] = result_of(operation, a, b);
  op::check_like(name(operation), "out", call.out(), dtype, shape);
  return {operation, call.out(), a.broadcast_to(shape), b.broadcast_to(shape)};
}

template <class Options>
std::vector<op::OutputSpec> infer_unary(std::span<const TensorView> in, const Options&) {
  return {{"out", in[0].dtype(), in[0].shape()}};
}

// The operation's parameter.
float alpha(const ElementwiseOptions&) { return 0; }
float alpha(const LeakyReluOptions& o) { return o.alpha; }
float alpha(const EluOptions& o) { return o.alpha; }
float alpha(const SwishOptions& o) { return o.beta; }
float alpha(const GeluOptions&) { return 0; }

template <Operation operation, class Options>
Problem check_unary(const op::Call<Options>& call) {
  const TensorView& x = call.in();
  if constexpr (operation == Operation::negative)
    check_number(name(operation), "x", x);
  else
    op::check_dtype(name(operation), "x", x, {DType::float32, DType::float16, DType::bfloat16});
  op::check_like(name(operation), "out", call.out(), x.dtype(), x.shape());
  return {operation, call.out(), x, x, alpha(call.options)};
}

Problem check_gelu(const op::Call<GeluOptions>& call) {
  Problem q = check_unary<Operation::gelu>(call);
  if (call.options.approximate == GeluApproximation::tanh) q.operation = Operation::gelu_tanh;
  return q;
}

std::vector<op::OutputSpec> infer_astype(std::span<const TensorView> in, const AstypeOptions& o) {
  return {{"out", o.dtype, in[0].shape()}};
}

Problem check_astype(const op::Call<AstypeOptions>& call) {
  const TensorView& x = call.in();
  op::check_like("astype", "out", call.out(), call.options.dtype, x.shape());
  const bool same = x.dtype() == call.options.dtype;
  return {same ? Operation::copy : Operation::astype, call.out(), x, x};
}

Problem check_fill(const op::Call<FillOptions>& call) {
  const TensorView& x = call.in();
  op::check_like("fill", "out", call.out(), x.dtype(), x.shape());
  return {Operation::fill, call.out(), call.out(), call.out(), 0, call.options.value};
}

// A Python bool is a number here, so that full(shape, True) works.
op::Option<FillOptions> fill_value() {
  auto o = op::positional(op::option("value", &FillOptions::value, "what every element becomes"));
  o.set = [](std::string_view op, FillOptions& options, const op::Value& v) {
    if (!std::holds_alternative<std::monostate>(v))
      options.value = op::to_exact_number(op, "value", v);
  };
  return o;
}

constexpr std::string_view kBinaryDetails =
    "Shapes broadcast by NumPy's rule, strides are free. Of two floats the wider is the result, of "
    "float16 and bfloat16 float32, of an integer and a float the float, of two integers the wider. "
    "Floats are computed in float32 and rounded once; integers wrap.";

template <Operation operation>
op::Definition<Problem, ElementwiseOptions> binary(std::string_view summary,
                                                   std::string_view details) {
  return {.name = name(operation),
          .group = "elementwise",
          .summary = summary,
          .details = details,
          .aliases = {},
          .inputs = {{"a", "the first operand"}, {"b", "the second operand"}},
          .options = {},
          .out_doc = "the broadcast shape of a and b, of their common dtype",
          .extra_outputs = {},
          .dtypes = kNumbers,
          .in_place = true,
          .infer = infer_binary<operation>,
          .check = check_binary<operation>,
          .cost = cost,
          .table = table()};
}

template <class Options>
op::Definition<Problem, Options> unary(std::string_view name, std::string_view summary,
                                       std::string_view details, const std::vector<DType>& dtypes,
                                       std::vector<op::Option<Options>> options,
                                       Problem (*check)(const op::Call<Options>&)) {
  return {.name = name,
          .group = "elementwise",
          .summary = summary,
          .details = details,
          .aliases = {},
          .inputs = {{"x", "any shape and strides"}},
          .options = std::move(options),
          .out_doc = "shape and dtype of x",
          .extra_outputs = {},
          .dtypes = dtypes,
          .in_place = true,
          .infer = infer_unary<Options>,
          .check = check,
          .cost = cost,
          .table = table()};
}

template <Operation operation>
op::Definition<Problem, ElementwiseOptions> plain(std::string_view summary,
                                                  std::string_view details,
                                                  const std::vector<DType>& dtypes = kFloats) {
  return unary<ElementwiseOptions>(name(operation), summary, details, dtypes, {},
                                   check_unary<operation, ElementwiseOptions>);
}

op::Definition<Problem, AstypeOptions> make_astype() {
  auto d = unary<AstypeOptions>(
      "astype", "Converts the elements to another dtype.",
      "To a float rounds to nearest even by way of float32; float8 saturates. Float to integer "
      "drops "
      "the fraction, saturates, and makes 0 of NaN. A narrower integer keeps the low bits. To bool "
      "is "
      "!= 0. The same dtype is a copy of the bits.",
      kAll, {op::positional(op::option("dtype", &AstypeOptions::dtype, "dtype of the result"))},
      check_astype);
  d.out_doc = "shape of x, dtype as asked";
  d.infer = infer_astype;
  return d;
}

const auto kAdd = binary<Operation::add>("a + b.", kBinaryDetails);
const auto kSubtract = binary<Operation::subtract>("a - b.", kBinaryDetails);
const auto kMultiply = binary<Operation::multiply>("a * b.", kBinaryDetails);
const auto kDivide = binary<Operation::divide>("a / b.",
                                               "As add, but two integers give float32. Division by "
                                               "zero gives an infinity or NaN, as IEEE says.");
const auto kMaximum = binary<Operation::maximum>(
    "The larger of a and b.", "As add. NaN where either is NaN; +0 is above -0 on a GPU.");
const auto kMinimum = binary<Operation::minimum>(
    "The smaller of a and b.", "As add. NaN where either is NaN; -0 is below +0 on a GPU.");

constexpr std::string_view kUnaryDetails =
    "Computed in float32 and rounded once to the dtype of x. NaN stays NaN.";
constexpr std::string_view kGatedDetails =
    "Computed in float32 and rounded once to the dtype of x. NaN stays NaN; -infinity gives NaN, "
    "as "
    "the formula does.";
const auto kNegative =
    plain<Operation::negative>("-x.", "Exact; the smallest integer stays itself.", kNumbers);
const auto kExp = plain<Operation::exp>("e^x.", kUnaryDetails);
const auto kTanh = plain<Operation::tanh>("The hyperbolic tangent.", kUnaryDetails);
const auto kSigmoid = plain<Operation::sigmoid>("1 / (1 + e^-x).", kUnaryDetails);
const auto kRelu =
    plain<Operation::relu>("x where x >= 0, else 0.", "Exact. NaN stays NaN, -0 stays -0.");
const auto kSilu = plain<Operation::silu>("x / (1 + e^-x).", kGatedDetails);
const auto kLeakyRelu =
    unary<LeakyReluOptions>("leaky_relu", "x where x > 0, else alpha x.", kUnaryDetails, kFloats,
                            {op::option("alpha", &LeakyReluOptions::alpha, "slope below zero")},
                            check_unary<Operation::leaky_relu, LeakyReluOptions>);
const auto kElu =
    unary<EluOptions>("elu", "x where x > 0, else alpha (e^x - 1).", kUnaryDetails, kFloats,
                      {op::option("alpha", &EluOptions::alpha, "minus the limit far below zero")},
                      check_unary<Operation::elu, EluOptions>);
const auto kSwish = unary<SwishOptions>(
    "swish", "x / (1 + e^(-beta x)).", kGatedDetails, kFloats,
    {op::positional(op::option("beta", &SwishOptions::beta, "steepness of the gate"))},
    check_unary<Operation::swish, SwishOptions>);
const auto kGelu = unary<GeluOptions>(
    "gelu", "x times the cumulative normal distribution.",
    "x (1 + erf(x / sqrt(2))) / 2, or with approximate=\"tanh\" "
    "x (1 + tanh(0.7978845608028654 (x + 0.044715 x^3))) / 2. Computed in float32 and rounded "
    "once. "
    "NaN stays NaN; -infinity gives NaN, as the formula does.",
    kFloats, {op::option("approximate", &GeluOptions::approximate, "the exact form, or by tanh")},
    check_gelu);
const auto kAstype = make_astype();
const auto kFill = unary<FillOptions>(
    "fill", "Every element becomes one value.",
    "x gives shape, dtype and device and is not read; the value is converted as astype does.", kAll,
    {fill_value()}, check_fill);

}  // namespace
}  // namespace kernel::elementwise

#define TC_DEFINE_BINARY(op_name, definition)                                                   \
  void op_name(const TensorView& out, const TensorView& a, const TensorView& b,                 \
               const ElementwiseOptions& options) {                                             \
    op::run(kernel::elementwise::definition, out, {a, b}, options);                             \
  }                                                                                             \
  Tensor op_name(const TensorView& a, const TensorView& b, const ElementwiseOptions& options) { \
    return std::move(op::allocate(kernel::elementwise::definition, {a, b}, options)[0]);        \
  }
#define TC_DEFINE_UNARY(op_name, definition, Options)                                 \
  void op_name(const TensorView& out, const TensorView& x, const Options& options) {  \
    op::run(kernel::elementwise::definition, out, {x}, options);                      \
  }                                                                                   \
  Tensor op_name(const TensorView& x, const Options& options) {                       \
    return std::move(op::allocate(kernel::elementwise::definition, {x}, options)[0]); \
  }
TC_DEFINE_BINARY(add, kAdd)
TC_DEFINE_BINARY(subtract, kSubtract)
TC_DEFINE_BINARY(multiply, kMultiply)
TC_DEFINE_BINARY(divide, kDivide)
TC_DEFINE_BINARY(maximum, kMaximum)
TC_DEFINE_BINARY(minimum, kMinimum)
TC_DEFINE_UNARY(negative, kNegative, ElementwiseOptions)
TC_DEFINE_UNARY(exp, kExp, ElementwiseOptions)
TC_DEFINE_UNARY(tanh, kTanh, ElementwiseOptions)
TC_DEFINE_UNARY(sigmoid, kSigmoid, ElementwiseOptions)
TC_DEFINE_UNARY(relu, kRelu, ElementwiseOptions)
TC_DEFINE_UNARY(leaky_relu, kLeakyRelu, LeakyReluOptions)
TC_DEFINE_UNARY(elu, kElu, EluOptions)
TC_DEFINE_UNARY(silu, kSilu, ElementwiseOptions)
TC_DEFINE_UNARY(swish, kSwish, SwishOptions)
TC_DEFINE_UNARY(gelu, kGelu, GeluOptions)
TC_DEFINE_UNARY(astype, kAstype, AstypeOptions)
TC_DEFINE_UNARY(fill, kFill, FillOptions)
#undef TC_DEFINE_BINARY
#undef TC_DEFINE_UNARY

op::OperatorList ops::elementwise() {
  namespace e = kernel::elementwise;
  static const auto& all = *new op::OperatorList([] {  // leaked, as Kept is
    op::OperatorList list{new op::OperatorOf(e::kAdd),      new op::OperatorOf(e::kSubtract),
                          new op::OperatorOf(e::kMultiply), new op::OperatorOf(e::kDivide),
                          new op::OperatorOf(e::kMaximum),  new op::OperatorOf(e::kMinimum),
                          new op::OperatorOf(e::kNegative), new op::OperatorOf(e::kExp),
                          new op::OperatorOf(e::kTanh),     new op::OperatorOf(e::kSigmoid),
                          new op::OperatorOf(e::kRelu),     new op::OperatorOf(e::kLeakyRelu),
                          new op::OperatorOf(e::kElu),      new op::OperatorOf(e::kSilu),
                          new op::OperatorOf(e::kSwish),    new op::OperatorOf(e::kGelu),
                          new op::OperatorOf(e::kAstype),   new op::OperatorOf(e::kFill)};
    for (const op::Operator* o : e::function_operators()) list.push_back(o);
    for (const op::Operator* o : e::expression_operators()) list.push_back(o);
    return list;
  }());
  return all;
}

}  // namespace tensorcraft
