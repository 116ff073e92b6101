// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/expression/language.hpp"

// Steps with their dtypes: the rules of promotion, for the parser and for operators that are one
// step. Host only.
namespace tensorcraft::expression {

// The dtype of two numbers together: the wider float, float32 for float16 with bfloat16, the float
// of an integer and a float, the wider integer, an integer that holds both for uint8 with int8.
DType promoted(DType a, DType b);

// A value of an expression while it is built: a slot with a dtype, or a number.
struct Value {
  int slot = -1;  // below 0: a number
  DType dtype = DType::float32;
  Number number = int64_t(0);
  bool is_number() const { return slot < 0; }
};

// Appends steps to a program. Each function throws an Error with the text of what is wrong, without
// the name of an operator, which the caller knows.
class Builder {
 public:
  explicit Builder(Program& program) : p_(program) {}

  Value input(DType dtype);
  // Operands are promoted(); a number takes the other's dtype, or float32 if that is an integer
  // and the number is none. divide gives a float.
  Value arithmetic(Operation operation, const Value& a, const Value& b);
  // Like arithmetic(), where integers have no result.
  Value of_two_floats(Operation operation, const Value& a, const Value& b);
  // Takes integers, and bool but for the shifts.
  Value bitwise(Operation operation, const Value& a, const Value& b);
  Value bitwise_invert(const Value& x);
  Value compare(Operation operation, const Value& a, const Value& b);
  // One float, or number that stays one; negative, abs and sign of integers too. `parameter` is the
  // operation's.
  Value unary(Operation operation, const Value& x, double parameter = 0);
  // round, floor, ceil and trunc; integers stay.
  Value rounded(Operation operation, const Value& x);
  Value positive(const Value& x);
  Value reciprocal(const Value& x);
  Value is_nan(const Value& x);
  Value is_infinite(const Value& x);
  Value is_finite(const Value& x);
  Value sign_bit(const Value& x);
  Value logical_and(const Value& a, const Value& b);
  Value logical_or(const Value& a, const Value& b);
  Value logical_xor(const Value& a, const Value& b);
  Value logical_not(const Value& x);
  Value where(const Value& condition, const Value& a, const Value& b);
  Value cast(const Value& x, DType dtype);
  // Makes `x` what the program gives, converted to `dtype`.
  void finish(const Value& x, std::optional<DType> dtype);

 private:
  Value append(Operation operation, DType dtype, bool integer, int a, int b, int c);
  Value pair(Operation operation, DType dtype, const Value& a, const Value& b);
  int number_slot(const Number& number, DType dtype);
  // The slot of x among floats or among integers, a number in `dtype`.
  int slot_in(const Value& x, DType dtype);
  int truth(const Value& x);

  Program& p_;
};

}  // namespace tensorcraft::expression
