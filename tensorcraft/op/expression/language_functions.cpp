// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/language_functions.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft::expression {
namespace {

Value with_parameter(Builder& builder, const Function& f, std::span<const Value> x) {
  if (x.size() == 1) return builder.unary(f.operation, x[0], f.parameter);
  if (!x[1].is_number())
    fail(ErrorKind::type, "the second argument of ", f.name, " must be a number, got an array");
  return builder.unary(f.operation, x[0], to_double(x[1].number));
}

}  // namespace

Value apply(Builder& builder, const Function& f, std::span<const Value> x) {
  switch (f.form) {
    case Form::real:
    case Form::number:
      return builder.unary(f.operation, x[0]);
    case Form::real_parameter:
      return with_parameter(builder, f, x);
    case Form::rounding:
      return builder.rounded(f.operation, x[0]);
    case Form::positive:
      return builder.positive(x[0]);
    case Form::square:
      return builder.arithmetic(f.operation, x[0], x[0]);
    case Form::reciprocal:
      return builder.reciprocal(x[0]);
    case Form::sign_bit:
      return builder.sign_bit(x[0]);
    case Form::is_nan:
      return builder.is_nan(x[0]);
    case Form::is_infinite:
      return builder.is_infinite(x[0]);
    case Form::is_finite:
      return builder.is_finite(x[0]);
    case Form::arithmetic:
      return builder.arithmetic(f.operation, x[0], x[1]);
    case Form::two_floats:
      return builder.of_two_floats(f.operation, x[0], x[1]);
    case Form::compare:
    case Form::equality:
      return builder.compare(f.operation, x[0], x[1]);
    case Form::compare_swapped:
      return builder.compare(f.operation, x[1], x[0]);
    case Form::logical_not:
      return builder.logical_not(x[0]);
    case Form::logical_and:
      return builder.logical_and(x[0], x[1]);
    case Form::logical_or:
      return builder.logical_or(x[0], x[1]);
    case Form::logical_xor:
      return builder.logical_xor(x[0], x[1]);
    case Form::bitwise_invert:
      return builder.bitwise_invert(x[0]);
    case Form::bitwise:
    case Form::shift:
      return builder.bitwise(f.operation, x[0], x[1]);
    case Form::where:
      return builder.where(x[0], x[1], x[2]);
    case Form::clip:
      return builder.arithmetic(Operation::minimum,
                                builder.arithmetic(Operation::maximum, x[0], x[1]), x[2]);
  }
  fail(ErrorKind::internal, "form ", int(f.form), " is not known");
}

}  // namespace tensorcraft::expression
