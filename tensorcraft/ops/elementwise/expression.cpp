// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/expression.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/op/expression/operands.hpp"
#include "tensorcraft/ops/elementwise/definitions.hpp"
#include "tensorcraft/ops/elementwise/expression_plan.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tensorcraft {
namespace kernel::elementwise {
namespace {

// Axis i of all tensors follows the last of p without a gap in any of them.
bool merges(const ExpressionParams& p, const std::vector<const TensorView*>& tensors, int i) {
  if (p.axes == 0) return false;
  for (size_t t = 0; t < tensors.size(); ++t)
    if (p.strides[t][p.axes - 1] != tensors[t]->stride(i) * tensors[t]->shape(i)) return false;
  return true;
}

op::RungCall<ExpressionParams, ExpressionGiven> expression_call(const ExpressionProblem& q) {
  ExpressionParams p{};
  ExpressionGiven given{.num_steps = q.program.num_steps};
  std::vector<const TensorView*> tensors{&q.out};
  for (const TensorView& t : q.inputs) {
    p.inputs[tensors.size() - 1] = t.data();
    tensors.push_back(&t);
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    given.bytes[t] = int(dtype_bytes(tensors[t]->dtype()));
    given.widest = std::max(given.widest, given.bytes[t]);
  }
  p.out = q.out.writable_data();
  p.size = q.out.size();
  p.num_inputs = int32_t(q.inputs.size());
  std::copy(q.program.numbers.begin(), q.program.numbers.end(), p.numbers);
  for (int i = 0; i < q.out.rank(); ++i) {
    if (q.out.shape(i) == 1) continue;
    const bool is_next = !merges(p, tensors, i);
    if (is_next) p.shape[p.axes++] = 1;
    p.shape[p.axes - 1] *= q.out.shape(i);
    for (size_t t = 0; t < tensors.size(); ++t) p.strides[t][p.axes - 1] = tensors[t]->stride(i);
  }
  if (p.axes == 0) {  // one element
    p.shape[p.axes++] = 1;
    p.strides[0][0] = 1;
  }
  return {p, given, {}};
}

const jit::Rung* interpreted_rung() {
  return &op::make_rung("elementwise", "interpreted", "02_interpreted.cuh", op::kThreads,
                        "ExpressionConfig");
}

// Chooses what is compiled: the text of the program, or what interprets every program.
void complete(op::Plan& plan, std::string_view rung, const ExpressionProblem& q,
              const DeviceInfo&) {
  static constinit FirstMade<const jit::Rung, interpreted_rung> interpreted;
  const jit::Rung*& compiled = plan.first().kernel.rung;
  if (rung == "naive") {
    compiled = &*interpreted;
    plan.set_params(0,
                    interpreted_params(q.program, plan.params_as<ExpressionParams>(plan.first())));
  } else {
    const ExpressionRungs& rungs = rungs_of(q.program);
    compiled = rung == "fused" ? rungs.fused : rungs.strided;
  }
}

const op::HostVariant<ExpressionProblem> kExpressionHost[] = {
    {.name = "cpu", .idea = "float, step after step on blocks over all cores", .run = evaluate},
    {.name = "reference",
     .idea = "double, the reference of each operator in sequence",
     .run = evaluate_reference},
};

}  // namespace

InterpretedParams interpreted_params(const Program& program, const ExpressionParams& params) {
  InterpretedParams all{.p = params, .steps = {}, .dtypes = {}, .num_numbers = 0, .num_steps = 0};
  std::memcpy(all.steps, program.steps.data(), size_t(program.num_steps) * sizeof(Step));
  all.dtypes[0] = uint8_t(program.out());
  for (int i = 0; i < program.num_inputs; ++i)
    all.dtypes[i + 1] = uint8_t(program.inputs[size_t(i)]);
  all.num_numbers = uint8_t(program.num_numbers);
  all.num_steps = uint8_t(program.num_steps);
  return all;
}

namespace {

op::Ladder<ExpressionProblem>* make_expression_ladder() {
  return new auto(op::make_ladder<expression_call, kExpressionRungs, complete>(
      "elementwise", kExpressionFields, "ExpressionConfig"));
}

}  // namespace

const op::Ladder<ExpressionProblem>& expression_ladder() {
  static constinit FirstMade<const op::Ladder<ExpressionProblem>, make_expression_ladder> ladder;
  return *ladder;
}

std::span<const op::HostVariant<ExpressionProblem>> expression_host() { return kExpressionHost; }

ExpressionProblem checked(std::string_view op, const Program& program, const TensorView& out,
                          std::span<const TensorView> inputs, const Dims& shape) {
  ExpressionProblem q{program, out, {}};
  op::check_like(op, "out", out, program.out(), shape);
  for (const TensorView& t : inputs) q.inputs.push_back(t.broadcast_to(shape));
  return q;
}

op::Cost expression_cost(const ExpressionProblem& q) {
  double bytes = double(q.out.nbytes());
  for (const TensorView& t : q.inputs) bytes += distinct_bytes(t);
  return {.bytes = bytes, .flops = double(q.out.size()) * q.program.num_steps};
}

namespace {

// Holds a call without its arrays.
struct Request {
  std::string_view expression;
  op::NamedValues operands;
  std::optional<DType> out_dtype;
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
  std::source_location where = std::source_location::current();
};

Program program_of(std::span<const TensorView> arrays, const Request& request) {
  std::vector<Operand> operands;
  add_operands(operands, "elementwise", request.operands, arrays);
  return compile_expression(request.expression, operands, request.out_dtype);
}

Dims shape_of(std::span<const TensorView> arrays, const Request& request) {
  return broadcast_shape("elementwise", arrays,
                         [&](size_t i) { return op::array_name(request.operands, i); });
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> arrays, const Request& request) {
  const Program program = program_of(arrays, request);
  return {{"out", program.out(), shape_of(arrays, request)}};
}

ExpressionProblem check(const op::Call<Request>& call) {
  return checked("elementwise", program_of(call.inputs, call.options), call.out(), call.inputs,
                 shape_of(call.inputs, call.options));
}

std::vector<op::Parameter> array_parameters() {
  constexpr std::string_view kNames[kMaxInputs] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
  std::vector<op::Parameter> all;
  for (const std::string_view name : kNames) {
    op::Parameter p{name, "an array of the expression"};
    p.optional = !all.empty();
    p.named = true;
    all.push_back(p);
  }
  return all;
}

const op::Definition<ExpressionProblem, Request> kDefinition{
    .name = "elementwise",
    .group = "elementwise",
    .summary = "An expression over arrays and numbers, fused into one kernel.",
    .details =
        "Names of the text are the keyword arguments: up to eight arrays, which broadcast, and "
        "numbers, which take the dtype of the arrays they meet. There are + - * / // % **, & | ^ ~ "
        "<< >>, comparisons, "
        "and, or, not, where(c, a, b), clip(x, a, b), min, max, the functions of the elementwise "
        "operators, and casts such as float32(x). Each step is rounded to the dtype that its "
        "operator returns, so the result equals that sequence of operators bit for bit; cast to "
        "float32 to keep what follows there. A wrong text is an error with a caret below the "
        "column.",
    .inputs = array_parameters(),
    .options = {op::positional(op::option("expression", &Request::expression, "the text")),
                op::option("operands", &Request::operands, "arrays and numbers by the names in it"),
                op::option("out_dtype", &Request::out_dtype,
                           "dtype of the result; default: what the expression gives")},
    .out_doc = "the broadcast shape of the arrays, of the dtype of the expression",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2, DType::int8, DType::int16, DType::int32, DType::int64,
               DType::uint8, DType::bool_},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = expression_cost,
    .ladder = expression_ladder(),
    .host = expression_host()};

// A call from C++ in the registry's terms.
struct TypedCall : NamedArguments {
  TypedCall(std::string_view expression, NamedOperands operands, const ExpressionOptions& options);
  TypedCall(const TypedCall&) = delete;
  TypedCall& operator=(const TypedCall&) = delete;

  Request request;  // borrows `named`
};
TypedCall::TypedCall(std::string_view expression, NamedOperands operands,
                     const ExpressionOptions& options)
    : NamedArguments(operands) {
  if (arrays.empty() || arrays.size() > kMaxInputs)
    fail({ErrorKind::value, options.where}, "elementwise: takes 1 to ", kMaxInputs, " arrays, got ",
         arrays.size());
  request = {.expression = expression,
             .operands = named,
             .out_dtype = options.out_dtype,
             .variant = options.variant,
             .stream = options.stream,
             .where = options.where};
}

}  // namespace

op::OperatorList expression_operators() { return op::registered(kDefinition); }

}  // namespace kernel::elementwise

void elementwise(const TensorView& out, std::string_view expression, NamedOperands operands,
                 const ExpressionOptions& options) {
  const kernel::elementwise::TypedCall call(expression, operands, options);
  op::run(kernel::elementwise::kDefinition, std::span(&out, 1), call.arrays, call.request);
}

Tensor elementwise(std::string_view expression, NamedOperands operands,
                   const ExpressionOptions& options) {
  const kernel::elementwise::TypedCall call(expression, operands, options);
  return std::move(op::allocate(kernel::elementwise::kDefinition, call.arrays, call.request)[0]);
}

}  // namespace tensorcraft
