// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/cumulative_sum.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/output_type.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/cumulative_sum/plan.h"
#include "tensorcraft/ops/cumulative_sum/problem.hpp"

#include <cstddef>
#include <iterator>

namespace tensorcraft {
namespace kernel::cumulative_sum {
namespace {

constexpr std::string_view kNames[] = {"cumulative_sum", "cumulative_prod"};
constexpr std::string_view kOperations[] = {"sum", "prod", "float_prod"};
static_assert(std::size(kOperations) == size_t(Operation::float_prod) + 1);
template <Operation operation>
constexpr std::string_view kName = kNames[size_t(operation)];

constexpr ConfigField kFields[] = {
    {"operation", kOperations}, {"threads"}, {"vector"}, {"wide"}, {"nested"}, {"converts"}};

using Dtypes = std::initializer_list<DType>;
constexpr Dtypes kNumbers = {DType::float32, DType::float16, DType::bfloat16, DType::int8,
                             DType::int16,   DType::int32,   DType::int64,    DType::uint8};
constexpr Dtypes kAll = {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::int16,
                         DType::int32,   DType::int64,   DType::uint8,    DType::bool_};
template <Operation operation>
constexpr Dtypes kDtypes = operation == Operation::sum ? kNumbers : kAll;

DType own_dtype(DType x) { return is_floating(x) ? x : DType::int64; }

// Returns the type in which a kernel computes unless it is told another; see Sums.
DType kernel_result(const Problem& q) {
  const bool is_single = q.operation == Operation::float_prod;
  return is_single ? DType::float32 : own_dtype(q.x.dtype());
}

// Where the sums begin, also if there are none after the 0.
void* sums_of(const Problem& q) {
  if (!q.initial) return q.out.writable_data();
  const int64_t bytes = q.out.stride(q.axis) * int64_t(dtype_bytes(q.out.dtype()));
  return q.initial->data_as<std::byte>() + bytes;
}

Params params(const Problem& q) {
  return {.x = q.x.data(),
          .out = sums_of(q),
          .rows = q.rows(),
          .cols = q.cols(),
          .x_step = q.x.stride(q.axis),
          .out_step = q.out.stride(q.axis),
          .segments = 1,
          .segment_cols = q.cols(),
          .x_rows = op::row_map(q.x, q.axis),
          .out_rows = op::row_map(q.initial.value_or(q.out), q.axis),
          .out_type = op::output_type(q.out.dtype(), kernel_result(q)),
          .initial = q.initial.has_value(),
          .of_bools = q.x.dtype() == DType::bool_};
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const DType dtype = q.x.dtype();
  const Params p = params(q);
  return {p,
          {.is_float = is_floating(dtype),
           .element_bytes = int(dtype_bytes(dtype)),
           .converts = p.out_type != OutputType::own,
           .operation = q.operation},
          {dtype == DType::bool_ ? DType::uint8 : dtype}};
}

// The workspace holds what the segments of rows tell each other.
void complete(op::Plan& plan, std::string_view, const Problem&, const DeviceInfo&) {
  const auto& p = plan.params_as<Params>(plan.first());
  plan.workspace_bytes = workspace_bytes(p);
  plan.workspace_zeroed = workspace_zeroed(p);
  plan.first().workspace_at = offsetof(Params, workspace);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

template <Operation operation>
int axis_of(const TensorView& x, const CumulativeSumOptions& o) {
  constexpr std::string_view name = kName<operation>;
  op::check_dtype(name, "x", x, kDtypes<operation>);
  const int rank = x.rank();
  if (rank == 0) fail(ErrorKind::axis, name, ": x must have an axis, got a single number");
  if (!o.axis && rank > 1) fail(ErrorKind::value, name, ": give axis: x has ", rank, " axes");
  return normalize_axis(o.axis.value_or(0), rank, name.data());
}

template <Operation operation>
op::OutputSpec result(const TensorView& x, const CumulativeSumOptions& o, int axis) {
  Dims shape = x.shape();
  if (o.include_initial) ++shape[axis];
  const DType dtype =
      o.dtype ? op::asked_dtype(kName<operation>, x.dtype(), *o.dtype) : own_dtype(x.dtype());
  return {"out", dtype, shape};
}

template <Operation operation>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const CumulativeSumOptions& o) {
  return {result<operation>(in[0], o, axis_of<operation>(in[0], o))};
}

template <Operation operation>
Problem check(const op::Call<CumulativeSumOptions>& call) {
  const TensorView& x = call.in();
  const int axis = axis_of<operation>(x, call.options);
  const op::OutputSpec spec = result<operation>(x, call.options, axis);
  const TensorView& out = call.out();
  op::check_like(kName<operation>, "out", out, spec.dtype, spec.shape);
  const bool as_float = !is_floating(x.dtype()) && is_floating(spec.dtype);
  const Operation performed =
      operation == Operation::prod && as_float ? Operation::float_prod : operation;
  if (!call.options.include_initial) return {performed, out, x, axis};
  return {performed, out.slice(axis, 1, spec.shape[axis]), x, axis, out.slice(axis, 0, 1)};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = double(q.x.size())};
}

using Definition = op::Definition<Problem, CumulativeSumOptions>;

const auto kLadder = op::make_ladder<rung_call, kRungs, complete>("cumulative_sum", kFields);

template <Operation operation>
Definition define(std::string_view summary, std::string_view details, std::string_view axis,
                  std::string_view initial) {
  using Options = CumulativeSumOptions;
  return {.name = kName<operation>,
          .group = "reduce",
          .summary = summary,
          .details = details,
          .inputs = {{"x", "any shape with an axis, any strides"}},
          .options = {op::positional(op::option("axis", &Options::axis, axis)),
                      op::option("dtype", &Options::dtype,
                                 "of the result; None: that of floats, int64 of integers"),
                      op::option("include_initial", &Options::include_initial, initial)},
          .out_doc = "shape of x, one longer with include_initial; dtype of x, int64 or `dtype`",
          .dtypes = std::vector<DType>(kDtypes<operation>),
          .in_place = true,
          .infer = infer<operation>,
          .check = check<operation>,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
}

const Definition kSum = define<Operation::sum>(
    "The sums of the elements up to each one along an axis.",
    "Floats are added in float32, rounded once, and give their dtype; integers give "
    "int64, which wraps. dtype is another type of the result: a float, or of integers an "
    "integer, which keeps the low bits. A NaN makes all that follow it NaN. Results repeat to "
    "the bit. "
    "out may be x.",
    "along which to add; needed for more than one axis",
    "a 0 comes first, and the axis is one longer");
const Definition kProd = define<Operation::prod>(
    "The products of the elements up to each one along an axis.",
    "Floats are multiplied in float32 from the first element on, as NumPy does, rounded once, and "
    "give their dtype: what exceeds float32 on the way stays infinite, what vanishes stays 0, and "
    "the two together are NaN. Integers and bool give int64, which wraps. dtype is another type of "
    "the result: a float, in which integers are multiplied as float32, or of integers and bool an "
    "integer, which keeps the low bits. Results repeat to the bit. out may be x.",
    "along which to multiply; needed for more than one axis",
    "a 1 comes first, and the axis is one longer");

}  // namespace
}  // namespace kernel::cumulative_sum

void cumulative_sum(const TensorView& out, const TensorView& x,
                    const CumulativeSumOptions& options) {
  op::run(kernel::cumulative_sum::kSum, out, {x}, options);
}
Tensor cumulative_sum(const TensorView& x, const CumulativeSumOptions& options) {
  return std::move(op::allocate(kernel::cumulative_sum::kSum, {x}, options)[0]);
}

void cumulative_prod(const TensorView& out, const TensorView& x,
                     const CumulativeSumOptions& options) {
  op::run(kernel::cumulative_sum::kProd, out, {x}, options);
}
Tensor cumulative_prod(const TensorView& x, const CumulativeSumOptions& options) {
  return std::move(op::allocate(kernel::cumulative_sum::kProd, {x}, options)[0]);
}

op::OperatorList ops::cumulative_sum() {
  return op::registered(kernel::cumulative_sum::kSum, kernel::cumulative_sum::kProd);
}

}  // namespace tensorcraft
