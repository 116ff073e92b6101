// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/expression.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/ops/elementwise/expression_table.hpp"
#include "tensorcraft/ops/elementwise/functions.hpp"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace kernel::elementwise {
namespace {

// The names of a call in its order; an array has no number.
struct OperandList {
  static constexpr size_t kMax = kMaxInputs + kMaxNumbers;
  struct Entry {
    std::string_view name;
    std::optional<Number> number;
  };
  std::array<Entry, kMax> entries;
  size_t count = 0;

  void add(std::string_view name, std::optional<Number> number) {
    if (count == kMax)
      fail(ErrorKind::value, "elementwise: takes at most ", kMax, " arguments besides the text");
    entries[count++] = {name, std::move(number)};
  }
};

// What a call is besides its arrays.
struct Request {
  std::string_view expression;
  OperandList operands;
  std::optional<DType> out_dtype;
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Number parse_number(std::string_view name, std::string_view text) {
  if (text == "True" || text == "False") return text == "True";
  const char *begin = text.data(), *end = begin + text.size();
  int64_t whole = 0;
  if (const auto r = std::from_chars(begin, end, whole); r.ptr == end && r.ec == std::errc())
    return whole;
  double real = 0;
  if (const auto r = std::from_chars(begin, end, real); r.ptr == end && r.ec == std::errc())
    return real;
  fail(ErrorKind::value, "elementwise: operands: ", name, "=", text,
       " is not a number of 64 bits, True or False");
}

// "g, u, b=0.5": two arrays and a number.
OperandList parse_operands(std::string_view text) {
  OperandList list;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    const size_t equals = item.find('=');
    const std::string_view name = trimmed(item.substr(0, equals));
    if (equals == item.npos)
      list.add(name, std::nullopt);
    else
      list.add(name, parse_number(name, trimmed(item.substr(equals + 1))));
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return list;
}

std::string_view array_name(const Request& request, size_t array) {
  for (size_t i = 0; i < request.operands.count; ++i)
    if (!request.operands.entries[i].number && array-- == 0)
      return request.operands.entries[i].name;
  return "argument";
}

Program program_of(std::span<const TensorView> arrays, const Request& request) {
  std::array<Operand, OperandList::kMax> operands;
  size_t used = 0;
  const OperandList& list = request.operands;
  for (size_t i = 0; i < list.count; ++i) {
    const auto& [name, number] = list.entries[i];
    if (number)
      operands[i] = {name, *number};
    else if (used < arrays.size())
      operands[i] = {name, arrays[used++].dtype()};
    else
      fail(ErrorKind::value, "elementwise: operands: ", name, " needs an array, and there are ",
           arrays.size());
  }
  if (used < arrays.size())
    fail(ErrorKind::value, "elementwise: operands must name ", arrays.size(), " arrays, got ", used,
         " names");
  return compile_expression(request.expression, {operands.data(), list.count}, request.out_dtype);
}

Dims shape_of(std::span<const TensorView> arrays, const Request& request) {
  Dims shape;
  for (size_t i = 0; i < arrays.size(); ++i) try {
      shape = broadcast_shapes(shape, arrays[i].shape());
    } catch (const Error& e) {
      fail(e.kind(), "elementwise: ", array_name(request, i), ": ", e.what());
    }
  return shape;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> arrays, const Request& request) {
  const Program program = program_of(arrays, request);
  return {{"out", program.out(), shape_of(arrays, request)}};
}

ExpressionProblem check(const op::Call<Request>& call) {
  ExpressionProblem q{program_of(call.inputs, call.options), call.out(), {}};
  const Dims shape = shape_of(call.inputs, call.options);
  op::check_like("elementwise", "out", call.out(), q.program.out(), shape);
  for (const TensorView& t : call.inputs) q.inputs.push_back(t.broadcast_to(shape));
  return q;
}

op::Option<Request> operands_option() {
  op::Option<Request> o{
      {"operands", "names of the arrays and values of the numbers", op::ParameterKind::text},
      {},
      {}};
  o.parameter.default_value = "\"\"";
  o.set = [](std::string_view op, Request& request, const op::Value& v) {
    if (!std::holds_alternative<std::monostate>(v))
      request.operands = parse_operands(op::to_text(op, "operands", v));
  };
  o.add_to = [](op::CallKey& key, const Request& request) {
    key.add(request.operands.count);
    for (size_t i = 0; i < request.operands.count; ++i) {
      const auto& [name, number] = request.operands.entries[i];
      key.add(name);
      key.add(number ? number->index() : size_t(9));
      if (number) std::visit([&key](auto value) { key.add(value); }, *number);
    }
  };
  return o;
}

std::vector<op::Parameter> array_parameters() {
  constexpr std::string_view kNames[kMaxInputs] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
  std::vector<op::Parameter> all;
  for (const std::string_view name : kNames) {
    op::Parameter p{name, "an array of the expression"};
    p.optional = !all.empty();
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
        "numbers, which take the dtype of the arrays they meet. There are + - * / **, comparisons, "
        "and, or, not, where(c, a, b), clip(x, a, b), min, max, the functions of the elementwise "
        "operators, and casts such as float32(x). Each step is rounded to the dtype that its "
        "operator returns, so the result equals that sequence of operators bit for bit; cast to "
        "float32 to keep what follows there. A wrong text is an error with a caret below the "
        "column.",
    .aliases = {},
    .inputs = array_parameters(),
    .options = {op::positional(op::option("expression", &Request::expression, "the text")),
                operands_option(),
                op::option("out_dtype", &Request::out_dtype,
                           "dtype of the result; default: what the expression gives")},
    .out_doc = "the broadcast shape of the arrays, of the dtype of the expression",
    .extra_outputs = {},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2, DType::int8, DType::int16, DType::int32, DType::int64,
               DType::uint8, DType::bool_},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = expression_cost,
    .table = expression_table(),
    .input_name = array_name};

struct TypedCall {
  std::vector<TensorView> arrays;
  Request request;
};
TypedCall typed_call(std::string_view expression, NamedOperands operands,
                     const ExpressionOptions& options) {
  TypedCall call{{},
                 {.expression = expression,
                  .operands = {},
                  .out_dtype = options.out_dtype,
                  .variant = options.variant,
                  .stream = options.stream}};
  for (const NamedOperand& o : operands) {
    const auto* array = std::get_if<TensorView>(&o.value);
    std::optional<Number> number;
    if (const auto* truth = std::get_if<bool>(&o.value)) number = *truth;
    if (const auto* whole = std::get_if<int64_t>(&o.value)) number = *whole;
    if (const auto* real = std::get_if<double>(&o.value)) number = *real;
    if (array) call.arrays.push_back(*array);
    call.request.operands.add(o.name, number);
  }
  const size_t count = call.arrays.size();
  if (count == 0 || count > kMaxInputs)
    fail(ErrorKind::value, "elementwise: takes 1 to ", kMaxInputs, " arrays, got ", count);
  return call;
}

}  // namespace

op::OperatorList expression_operators() { return {new op::OperatorOf(kDefinition)}; }

}  // namespace kernel::elementwise

void elementwise(const TensorView& out, std::string_view expression, NamedOperands operands,
                 const ExpressionOptions& options) {
  const auto call = kernel::elementwise::typed_call(expression, operands, options);
  op::run(kernel::elementwise::kDefinition, std::span(&out, 1), call.arrays, call.request);
}

Tensor elementwise(std::string_view expression, NamedOperands operands,
                   const ExpressionOptions& options) {
  const auto call = kernel::elementwise::typed_call(expression, operands, options);
  return std::move(op::allocate(kernel::elementwise::kDefinition, call.arrays, call.request)[0]);
}

}  // namespace tensorcraft
