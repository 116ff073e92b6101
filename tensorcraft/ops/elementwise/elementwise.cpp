// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/elementwise.hpp"

#include "tensorcraft/op/expression/builder.hpp"
#include "tensorcraft/op/expression/operation_names.hpp"
#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/elementwise/definitions.hpp"
#include "tensorcraft/ops/elementwise/plan.h"

#include <algorithm>

namespace tensorcraft {
namespace kernel::elementwise {
namespace {

constexpr ConfigField kFields[] = {{"operation", kOperationNames},
                                   {"threads"},
                                   {"vectors"},
                                   {"single_a"},
                                   {"single_b"},
                                   {"repeats_a"},
                                   {"repeats_b"},
                                   {"nested"}};

// The name of the operator: gelu for both forms.
constexpr std::string_view name(Operation operation) {
  return kOperationNames[size_t(operation == Operation::gelu_tanh ? Operation::gelu : operation)];
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const bool fills = q.operation == Operation::fill,
             moves = fills || q.operation == Operation::copy;
  const Params p{.a = q.a.data(),
                 .b = q.b.data(),
                 .out = q.out.writable_data(),
                 .size = q.out.size(),
                 .a_map = op::element_map(q.a),
                 .b_map = op::element_map(q.b),
                 .out_map = op::element_map(q.out),
                 .alpha = q.alpha,
                 .fill_value = fills ? host::element_bits(q.out.dtype(), q.value) : 0};
  const auto bytes = [](const TensorView& t) { return int(dtype_bytes(t.dtype())); };
  const auto type = [&](const TensorView& t) { return moves ? op::moved_as(bytes(t)) : t.dtype(); };
  return {p,
          {q.operation, std::max({bytes(q.out), bytes(q.a), bytes(q.b)})},
          {type(q.a), type(q.b), type(q.out)}};
}

const auto kLadder = op::make_ladder<rung_call, kRungs>("elementwise", kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, blocks over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

op::Cost cost(const Problem& q) {
  const int inputs = num_inputs(q.operation);
  return {.bytes = double(q.out.nbytes()) + (inputs > 0 ? distinct_bytes(q.a) : 0) +
                   (inputs > 1 ? distinct_bytes(q.b) : 0),
          .flops = double(q.out.size())};
}

const std::vector<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};
const std::vector<DType> kNumbers = {DType::float32, DType::float16, DType::bfloat16, DType::int8,
                                     DType::int16,   DType::int32,   DType::int64,    DType::uint8};
const std::vector<DType> kAll = op::moved_dtypes();

struct Result {
  DType dtype;
  Dims shape;
};

void check_number(std::string_view op, std::string_view arg, const TensorView& t) {
  op::check_dtype(op, arg, t,
                  {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::int16,
                   DType::int32, DType::int64, DType::uint8});
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

constexpr std::string_view kBinaryDetails =
    "Shapes broadcast by NumPy's rule, strides are free. Of two floats the wider is the result, of "
    "float16 and bfloat16 float32, of an integer and a float the float, of two integers the wider, "
    "int16 of int8 and uint8. Floats are computed in float32 and rounded once; integers wrap.";

template <Operation operation>
op::Definition<Problem, ElementwiseOptions> binary(std::string_view summary,
                                                   std::string_view details) {
  return {.name = name(operation),
          .group = "elementwise",
          .summary = summary,
          .details = details,
          .inputs = {{"a", "the first operand"}, {"b", "the second operand"}},
          .out_doc = "the broadcast shape of a and b, of their common dtype",
          .dtypes = kNumbers,
          .in_place = true,
          .infer = infer_binary<operation>,
          .check = check_binary<operation>,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
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
          .inputs = {{"x", "any shape and strides"}},
          .options = std::move(options),
          .out_doc = "shape and dtype of x",
          .dtypes = dtypes,
          .in_place = true,
          .infer = infer_unary<Options>,
          .check = check,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
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
      "To a float rounds to nearest even, once; float8 saturates. Float to integer drops the "
      "fraction, saturates, and makes 0 of NaN. A narrower integer keeps the low bits. To bool is "
      "!= 0. The same dtype is a copy of the bits.",
      kAll, {op::positional(op::option("dtype", &AstypeOptions::dtype, "dtype of the result"))},
      check_astype);
  d.out_doc = "shape of x, dtype as asked";
  d.infer = infer_astype;
  return d;
}

constexpr std::string_view kUnaryDetails =
    "Computed in float32 and rounded once to the dtype of x. NaN stays NaN.";
constexpr std::string_view kGatedDetails =
    "Computed in float32 and rounded once to the dtype of x. NaN stays NaN; -infinity gives NaN, "
    "as the formula does.";

namespace definitions {

const auto add = binary<Operation::add>("a + b.", kBinaryDetails);
const auto subtract = binary<Operation::subtract>("a - b.", kBinaryDetails);
const auto multiply = binary<Operation::multiply>("a * b.", kBinaryDetails);
const auto divide = binary<Operation::divide>("a / b.",
                                              "As add, but two integers give float32. Division by "
                                              "zero gives an infinity or NaN, as IEEE says.");
const auto maximum = binary<Operation::maximum>(
    "The larger of a and b.", "As add. NaN where either is NaN; +0 is above -0 on a GPU.");
const auto minimum = binary<Operation::minimum>(
    "The smaller of a and b.", "As add. NaN where either is NaN; -0 is below +0 on a GPU.");

const auto negative =
    plain<Operation::negative>("-x.", "Exact; the smallest integer stays itself.", kNumbers);
const auto exp = plain<Operation::exp>("e^x.", kUnaryDetails);
const auto tanh = plain<Operation::tanh>("The hyperbolic tangent.", kUnaryDetails);
const auto sigmoid = plain<Operation::sigmoid>("1 / (1 + e^-x).", kUnaryDetails);
const auto relu =
    plain<Operation::relu>("x where x >= 0, else 0.", "Exact. NaN stays NaN, -0 stays -0.");
const auto silu = plain<Operation::silu>("x / (1 + e^-x).", kGatedDetails);
const auto leaky_relu =
    unary<LeakyReluOptions>("leaky_relu", "x where x > 0, else alpha x.", kUnaryDetails, kFloats,
                            {op::option("alpha", &LeakyReluOptions::alpha, "slope below zero")},
                            check_unary<Operation::leaky_relu, LeakyReluOptions>);
const auto elu =
    unary<EluOptions>("elu", "x where x > 0, else alpha (e^x - 1).", kUnaryDetails, kFloats,
                      {op::option("alpha", &EluOptions::alpha, "minus the limit far below zero")},
                      check_unary<Operation::elu, EluOptions>);
const auto swish = unary<SwishOptions>(
    "swish", "x / (1 + e^(-beta x)).", kGatedDetails, kFloats,
    {op::positional(op::option("beta", &SwishOptions::beta, "steepness of the gate"))},
    check_unary<Operation::swish, SwishOptions>);
const auto gelu = unary<GeluOptions>(
    "gelu", "x times the cumulative normal distribution.",
    "x (1 + erf(x / sqrt(2))) / 2, or with approximate=\"tanh\" "
    "x (1 + tanh(0.7978845608028654 (x + 0.044715 x^3))) / 2. Computed in float32 and rounded "
    "once. NaN stays NaN; -infinity gives NaN, as the formula does.",
    kFloats, {op::option("approximate", &GeluOptions::approximate, "the exact form, or by tanh")},
    check_gelu);
const auto astype = make_astype();
const auto fill = unary<FillOptions>(
    "fill", "Every element becomes one value.",
    "x gives shape, dtype and device and is not read; the value is converted as astype does.", kAll,
    {op::positional(op::option("value", &FillOptions::value, "what every element becomes"))},
    check_fill);

}  // namespace definitions
}  // namespace

double distinct_bytes(const TensorView& t) {
  double distinct = double(dtype_bytes(t.dtype()));
  for (int i = 0; i < t.rank(); ++i)
    if (t.stride(i) != 0) distinct *= double(t.shape(i));
  return distinct;
}

}  // namespace kernel::elementwise

TC_DEFINE_BINARY(add)
TC_DEFINE_BINARY(subtract)
TC_DEFINE_BINARY(multiply)
TC_DEFINE_BINARY(divide)
TC_DEFINE_BINARY(maximum)
TC_DEFINE_BINARY(minimum)
TC_DEFINE_UNARY(negative, ElementwiseOptions)
TC_DEFINE_UNARY(exp, ElementwiseOptions)
TC_DEFINE_UNARY(tanh, ElementwiseOptions)
TC_DEFINE_UNARY(sigmoid, ElementwiseOptions)
TC_DEFINE_UNARY(relu, ElementwiseOptions)
TC_DEFINE_UNARY(leaky_relu, LeakyReluOptions)
TC_DEFINE_UNARY(elu, EluOptions)
TC_DEFINE_UNARY(silu, ElementwiseOptions)
TC_DEFINE_UNARY(swish, SwishOptions)
TC_DEFINE_UNARY(gelu, GeluOptions)
TC_DEFINE_UNARY(astype, AstypeOptions)
TC_DEFINE_UNARY(fill, FillOptions)

op::OperatorList ops::elementwise() {
  namespace e = kernel::elementwise;
  namespace d = e::definitions;
  op::OperatorList all =
      op::registered(d::add, d::subtract, d::multiply, d::divide, d::maximum, d::minimum,
                     d::negative, d::exp, d::tanh, d::sigmoid, d::relu, d::leaky_relu, d::elu,
                     d::silu, d::swish, d::gelu, d::astype, d::fill);
  for (const op::Operator* o : e::function_operators()) all.push_back(o);
  for (const op::Operator* o : e::expression_operators()) all.push_back(o);
  return all;
}

}  // namespace tensorcraft
