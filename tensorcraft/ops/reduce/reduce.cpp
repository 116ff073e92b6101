// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/reduce.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/output_type.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/reduce/plan.h"
#include "tensorcraft/ops/reduce/problem.hpp"

#include <cstddef>
#include <type_traits>

namespace tensorcraft {
namespace kernel::reduce {
namespace {

using Dtypes = std::initializer_list<DType>;
#define TC_FLOATS DType::float32, DType::float16, DType::bfloat16
#define TC_INTEGERS DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8
constexpr Dtypes kFloats = {TC_FLOATS};
constexpr Dtypes kNumbers = {TC_FLOATS, TC_INTEGERS};
constexpr Dtypes kAll = {TC_FLOATS, TC_INTEGERS, DType::bool_};
#undef TC_FLOATS
#undef TC_INTEGERS

constexpr std::string_view kNames[] = {"sum",    "count",  "mean", "max",        "min",
                                       "argmax", "argmin", "prod", "float_prod", "var",
                                       "std",    "any",    "all"};
static_assert(std::size(kNames) == size_t(Operation::all) + 1);
template <Operation operation>
constexpr std::string_view kName =
    operation == Operation::count ? "count_nonzero" : kNames[size_t(operation)];

constexpr ConfigField kFields[] = {
    {"operation", kNames}, {"threads"}, {"group"}, {"vector"}, {"unroll"}, {"nested"}, {"shared"}};

// An operation that looks for bits alone takes int8 as uint8; a bool may hold more than 0 and 1.
DType kernel_dtype(const Problem& q) {
  const DType dtype = q.x.dtype();
  const bool is_truth = q.operation == Operation::any || q.operation == Operation::all ||
                        q.operation == Operation::count;
  return dtype == DType::bool_ || (is_truth && dtype == DType::int8) ? DType::uint8 : dtype;
}

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  return {params(q),
          {.operation = q.operation, .element_bytes = int(dtype_bytes(q.x.dtype()))},
          {kernel_dtype(q)}};
}

const jit::Rung& kCombine = op::make_rung("reduce", "combine", "combine.cuh", kFields);

// If blocks share outputs, a second step joins their parts.
void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo&) {
  const auto& p = plan.params_as<CallParams>(plan.first());
  plan.workspace_bytes = workspace_bytes(p);
  if (plan.workspace_bytes == 0) return;
  plan.first().workspace_at = offsetof(Params, workspace);
  const DType dtype = kernel_dtype(q);
  plan.add(op::make_step(kCombine, {&dtype, 1}, combine_start(p, q.operation)));
}

const auto kLadder = op::make_ladder<rung_call, kRungs, complete>("reduce", kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, outputs over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

constexpr bool needs_elements(Operation o) {
  return o == Operation::max || o == Operation::min || is_index(o);
}

template <Operation operation>
constexpr Dtypes kDtypes = operation == Operation::mean || is_spread(operation) ? kFloats
                           : needs_elements(operation)                          ? kNumbers
                                                                                : kAll;

// A bit for each axis.
template <class Axes>
unsigned axis_bits(std::string_view op, const Axes& axes, int rank) {
  unsigned bits = 0;
  for (const int64_t axis : axes) {
    const unsigned bit = 1u << normalize_axis(axis, rank, op.data());
    if (bits & bit)
      fail(ErrorKind::value, op, ": axis ", axis, " is named twice; each must be named once");
    bits |= bit;
  }
  return bits;
}
unsigned reduced_axes(std::string_view op, const std::optional<Dims>& axes, int rank) {
  return axes ? axis_bits(op, *axes, rank) : (1u << rank) - 1;
}
unsigned reduced_axes(std::string_view op, const std::optional<int64_t>& axis, int rank) {
  // A number without axes has one element along any.
  return axis ? axis_bits(op, Dims{*axis}, rank) : (1u << rank) - 1;
}

void check_not_empty(std::string_view op, const TensorView& x, unsigned reduced) {
  for (int i = 0; i < x.rank(); ++i)
    if ((reduced >> i & 1) && x.shape(i) == 0)
      fail(ErrorKind::value, op, ": x: axis ", i, " of shape ", x.shape(),
           " must have at least one element: of none there is no ", op);
}

template <Operation operation, class Options>
op::OutputSpec result(const TensorView& x, const Options& o, unsigned& reduced) {
  constexpr std::string_view name = kName<operation>;
  op::check_dtype(name, "x", x, kDtypes<operation>);
  reduced = reduced_axes(name, o.axis, x.rank());
  if constexpr (needs_elements(operation)) check_not_empty(name, x, reduced);
  Dims shape;
  for (int i = 0; i < x.rank(); ++i) {
    const bool goes = reduced >> i & 1;
    if (!goes || o.keepdims) shape.push_back(goes ? 1 : x.shape(i));
  }
  DType dtype = own_dtype(operation, x.dtype());
  if constexpr (std::is_same_v<Options, SumOptions>)
    if (o.dtype) dtype = op::asked_dtype(name, x.dtype(), *o.dtype);
  return {"out", dtype, shape};
}

template <Operation operation, class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  unsigned reduced = 0;
  return {result<operation>(in[0], o, reduced)};
}

template <class Options>
float correction(const Options& o) {
  if constexpr (std::is_same_v<Options, VarOptions>)
    return o.correction;
  else
    return 0;
}

// For bools the sum counts those that are true, and the product says whether all are.
Operation performed(Operation operation, DType x, DType out) {
  const bool is_sum = operation == Operation::sum, is_product = operation == Operation::prod;
  if (x == DType::bool_ && is_sum) return Operation::count;
  if (x == DType::bool_ && is_product) return Operation::all;
  return is_product && !is_floating(x) && is_floating(out) ? Operation::float_prod : operation;
}

template <Operation operation, class Options>
Problem check(const op::Call<Options>& call) {
  unsigned reduced = 0;
  const TensorView& x = call.in();
  const op::OutputSpec spec = result<operation>(x, call.options, reduced);
  op::check_like(kName<operation>, "out", call.out(), spec.dtype, spec.shape);
  return make_problem(performed(operation, x.dtype(), spec.dtype), call.out(), x, reduced,
                      correction(call.options));
}

op::Cost cost(const Problem& q) {
  double distinct = double(dtype_bytes(q.x.dtype()));
  for (int i = 0; i < q.x.rank(); ++i)
    if (q.x.stride(i) != 0) distinct *= double(q.x.shape(i));
  const double flops = is_spread(q.operation) ? 3 : 1;
  return {.bytes = distinct + double(q.out.nbytes()), .flops = flops * double(q.x.size())};
}

template <class Options>
std::vector<op::Option<Options>> options() {
  return {op::positional(op::option("axis", &Options::axis, "which axes go; None: all")),
          op::option("keepdims", &Options::keepdims, "they stay, with size 1")};
}

template <Operation operation, class Options>
op::Definition<Problem, Options> define(
    std::string_view summary, std::string_view details, std::string_view out_doc,
    const std::vector<op::Option<Options>>& taken = options<Options>()) {
  return {.name = kName<operation>,
          .group = "reduce",
          .summary = summary,
          .details = details,
          .inputs = {{"x", "any shape and strides"}},
          .options = taken,
          .out_doc = out_doc,
          .dtypes = std::vector<DType>(kDtypes<operation>),
          .infer = infer<operation, Options>,
          .check = check<operation, Options>,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
}

template <Operation operation>
op::Definition<Problem, VarOptions> define_spread(std::string_view summary,
                                                  std::string_view details) {
  auto with_correction = options<VarOptions>();
  with_correction.push_back(
      op::option("correction", &VarOptions::correction, "taken from the number of elements"));
  return define<operation, VarOptions>(summary, details, "shape of x without the axes, dtype of x",
                                       with_correction);
}

template <Operation operation>
op::Definition<Problem, SumOptions> define_total(std::string_view summary,
                                                 std::string_view details) {
  auto with_dtype = options<SumOptions>();
  with_dtype.push_back(op::option("dtype", &SumOptions::dtype,
                                  "of the result; None: that of floats, int64 of others"));
  return define<operation, SumOptions>(
      summary, details, "shape of x without the axes; dtype of x, int64 or `dtype`", with_dtype);
}

const auto kSum = define_total<Operation::sum>(
    "The sum over axes.",
    "Floats are added in float32, rounded once, and give their dtype; integers and bool give "
    "int64, which wraps. dtype is another type of the result: a float, or of integers and bool an "
    "integer, which keeps the low bits. No elements give 0. Results repeat to the bit.");
const auto kProd = define_total<Operation::prod>(
    "The product over axes.",
    "Floats are multiplied in float32 with an exponent apart, rounded once, and give their dtype: "
    "the result is infinite or 0 only if the whole product is, whatever products of parts are. "
    "Integers and bool give int64, which wraps. dtype is another type of the result: a float, in "
    "which integers are "
    "multiplied as float32, or of integers and bool an integer, which keeps the low bits. No "
    "elements give 1. Results repeat to the bit.");
const auto kVar = define_spread<Operation::var>(
    "The variance over axes.",
    "sum((x - mean)^2) / (n - correction), where correction=1 gives the unbiased estimate of a "
    "sample. Computed in float32 from deviations, never from squares of x, and rounded once. A "
    "divisor of 0 or below counts as 0 and gives NaN or an infinity, as no elements do. Results "
    "repeat to the bit.");
const auto kStd = define_spread<Operation::std>(
    "The standard deviation over axes.",
    "The square root of var, taken in float32 before the result is rounded. A divisor of 0 or "
    "below gives NaN or an infinity, as no elements do. Results repeat to the bit.");
const auto kMean = define<Operation::mean, ReduceOptions>(
    "The mean over axes.",
    "The float32 sum divided by the number of elements, rounded once. No elements give NaN. "
    "Results repeat to the bit.",
    "shape of x without the axes, dtype of x");
const auto kMax = define<Operation::max, ReduceOptions>(
    "The largest element over axes.",
    "NaN where an element is NaN; +0 is above -0 on a GPU. An axis of size 0 is a ValueError.",
    "shape of x without the axes, dtype of x");
const auto kMin = define<Operation::min, ReduceOptions>(
    "The smallest element over axes.",
    "NaN where an element is NaN; -0 is below +0 on a GPU. An axis of size 0 is a ValueError.",
    "shape of x without the axes, dtype of x");
const auto kArgmax = define<Operation::argmax, ArgmaxOptions>(
    "Where the largest element is.",
    "The first index of the largest element along the axis, or into all elements in row-major "
    "order. A NaN is larger than any number. An axis of size 0 is a ValueError.",
    "int64, shape of x without the axis");
const auto kArgmin = define<Operation::argmin, ArgmaxOptions>(
    "Where the smallest element is.",
    "The first index of the smallest element along the axis, or into all elements in row-major "
    "order. A NaN is smaller than any number. An axis of size 0 is a ValueError.",
    "int64, shape of x without the axis");
const auto kCount = define<Operation::count, ReduceOptions>("How many elements are not 0.",
                                                            "NaN is not 0. No elements give 0.",
                                                            "int64, shape of x without the axes");
const auto kAny = define<Operation::any, ReduceOptions>("Is an element not 0?",
                                                        "NaN is not 0. No elements give False.",
                                                        "bool, shape of x without the axes");
const auto kAllOf = define<Operation::all, ReduceOptions>("Are all elements not 0?",
                                                          "NaN is not 0. No elements give True.",
                                                          "bool, shape of x without the axes");

}  // namespace
}  // namespace kernel::reduce

#define TC_DEFINE_REDUCTION(op_name, definition, Options)                            \
  void op_name(const TensorView& out, const TensorView& x, const Options& options) { \
    op::run(kernel::reduce::definition, out, {x}, options);                          \
  }                                                                                  \
  Tensor op_name(const TensorView& x, const Options& options) {                      \
    return std::move(op::allocate(kernel::reduce::definition, {x}, options)[0]);     \
  }
TC_DEFINE_REDUCTION(sum, kSum, SumOptions)
TC_DEFINE_REDUCTION(prod, kProd, SumOptions)
TC_DEFINE_REDUCTION(count_nonzero, kCount, ReduceOptions)
TC_DEFINE_REDUCTION(mean, kMean, ReduceOptions)
TC_DEFINE_REDUCTION(max, kMax, ReduceOptions)
TC_DEFINE_REDUCTION(min, kMin, ReduceOptions)
TC_DEFINE_REDUCTION(argmax, kArgmax, ArgmaxOptions)
TC_DEFINE_REDUCTION(argmin, kArgmin, ArgmaxOptions)
TC_DEFINE_REDUCTION(var, kVar, VarOptions)
TC_DEFINE_REDUCTION(std, kStd, VarOptions)
TC_DEFINE_REDUCTION(any, kAny, ReduceOptions)
TC_DEFINE_REDUCTION(all, kAllOf, ReduceOptions)
#undef TC_DEFINE_REDUCTION

op::OperatorList ops::reduce() {
  namespace r = kernel::reduce;
  return op::registered(r::kSum, r::kMean, r::kMax, r::kMin, r::kArgmax, r::kVar, r::kAny,
                        r::kAllOf, r::kProd, r::kCount, r::kArgmin, r::kStd);
}

}  // namespace tensorcraft
