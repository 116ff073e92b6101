// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/builder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/expression/host_functions.hpp"
#include "tensorcraft/op/expression/operation_names.hpp"

#include <bit>
#include <cstring>
#include <cmath>
#include <limits>

namespace tensorcraft::expression {
namespace {

bool computes(DType dtype) {
  return dtype != DType::bool_ && dtype != DType::float8_e4m3fn && dtype != DType::float8_e5m2;
}

void require_number(DType dtype) {
  if (computes(dtype)) return;
  fail(ErrorKind::type, "dtype ", dtype, " takes no part in arithmetic; convert it first, as in ",
       is_floating(dtype) ? "float32" : "int32", "(x)");
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool is_real(const Number& n) { return std::holds_alternative<double>(n); }
double real(const Number& n) { return to_double(n); }
int64_t integer(const Number& n) {  // of one that is not real
  const auto* truth = std::get_if<bool>(&n);
  return truth ? int64_t(*truth) : std::get<int64_t>(n);
}

// The dtype in which a number meets values of another.
DType beside(DType dtype, const Number& n) {
  return is_real(n) && !is_floating(dtype) ? DType::float32 : dtype;
}

DType common(const Value& a, const Value& b) {
  if (!a.is_number()) require_number(a.dtype);
  if (!b.is_number()) require_number(b.dtype);
  if (a.is_number()) return beside(b.dtype, a.number);
  return b.is_number() ? beside(a.dtype, b.number) : promoted(a.dtype, b.dtype);
}

bool is_truth(const Value& v) {
  return v.is_number() ? std::holds_alternative<bool>(v.number) : v.dtype == DType::bool_;
}

[[noreturn]] void float_wanted(std::string_view function, DType dtype) {
  fail(ErrorKind::type, function, " takes a float dtype, got ", dtype,
       "; convert it first, as in float32(x)");
}

Value value_of(const Number& n) { return {.slot = -1, .dtype = DType::float32, .number = n}; }

[[noreturn]] void beyond_64_bits() {
  fail(ErrorKind::value, "the number does not fit 64 bits; write it with a point");
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (result == 0 || (result == 1 && base == 1)) break;
    if (base == -1) return exponent % 2 == 0 ? result : -result;
    if (__builtin_mul_overflow(result, base, &result)) beyond_64_bits();
  }
  return result;
}

// Two numbers, as Python computes them.
Number folded(Operation operation, const Number& a, const Number& b) {
  const bool whole = !is_real(a) && !is_real(b) && operation != Operation::divide &&
                     (operation != Operation::pow || integer(b) >= 0);
  if (!whole) return compute(operation, real(a), real(b), 0.0);
  const int64_t x = integer(a), y = integer(b);
  int64_t result = 0;
  switch (operation) {
    case Operation::add:
      if (__builtin_add_overflow(x, y, &result)) beyond_64_bits();
      return result;
    case Operation::subtract:
      if (__builtin_sub_overflow(x, y, &result)) beyond_64_bits();
      return result;
    case Operation::multiply:
      if (__builtin_mul_overflow(x, y, &result)) beyond_64_bits();
      return result;
    case Operation::pow:
      return power(x, y);
    default:
      return compute(operation, x, y);
  }
}

}  // namespace

DType promoted(DType a, DType b) {
  const bool both_float = is_floating(a) && is_floating(b),
             same_kind = is_floating(a) == is_floating(b);
  if (a == b) return a;
  if (both_float && dtype_bytes(a) == dtype_bytes(b)) return DType::float32;  // float16, bfloat16
  if (same_kind && dtype_bytes(a) == dtype_bytes(b)) return DType::int16;     // int8, uint8
  if (same_kind) return dtype_bytes(a) > dtype_bytes(b) ? a : b;
  return is_floating(a) ? a : b;
}

Value Builder::append(Operation operation, DType dtype, bool integer, int a, int b, int c) {
  const Step step{uint8_t(operation), uint8_t(dtype), uint8_t(a),
                  uint8_t(b),         uint8_t(c),     uint8_t(integer)};
  const auto same = [&](const Step& s) {
    return s.operation == step.operation && s.dtype == step.dtype && s.a == step.a &&
           s.b == step.b && s.c == step.c && s.integer == step.integer;
  };
  for (int i = 0; i < p_.num_steps; ++i)
    if (same(p_.steps[size_t(i)])) return {.slot = kFirstStep + i, .dtype = dtype};
  if (p_.num_steps == Program::kMaxSteps)
    fail(ErrorKind::value, "more than ", Program::kMaxSteps,
         " steps; split the expression in two calls");
  p_.steps[size_t(p_.num_steps)] = step;
  return {.slot = kFirstStep + p_.num_steps++, .dtype = dtype};
}

Value Builder::input(DType dtype) {
  if (p_.num_inputs == kMaxInputs)
    fail(ErrorKind::value, "more than ", kMaxInputs, " arrays; split the expression in two calls");
  p_.inputs[size_t(p_.num_inputs)] = dtype;
  return {.slot = p_.num_inputs++, .dtype = dtype};
}

int Builder::number_slot(const Number& n, DType dtype) {
  uint64_t bits = 0;
  if (is_real(n) || is_floating(dtype) || dtype == DType::bool_) {
    // As fill and astype convert it.
    uint64_t element = host::element_bits(dtype, n);
    bits = host::with_element_type(dtype, [&]<class T>(T*) {
      T value;
      std::memcpy(&value, &element, sizeof(T));
      if constexpr (FloatingPoint<T>)
        return uint64_t(std::bit_cast<uint32_t>(float(value)));
      else
        return uint64_t(int64_t(value));
    });
  } else {
    const int64_t value = integer(n);
    host::with_element_type(dtype, [&]<class T>(T*) {
      if constexpr (std::is_integral_v<T>) {
        const int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
        if (value < least || value > most)
          fail(ErrorKind::value, "the number ", value, " does not fit ", dtype, "; use one from ",
               least, " to ", most, ", or convert the array to a wider dtype first");
      }
    });
    bits = uint64_t(value);
  }
  if (p_.num_numbers == kMaxNumbers)
    fail(ErrorKind::value, "more than ", kMaxNumbers,
         " numbers; compute some of them before, or split the expression in two calls");
  p_.numbers[size_t(p_.num_numbers)] = bits;
  p_.number_types[size_t(p_.num_numbers)] = dtype;
  return kFirstNumber + p_.num_numbers++;
}

int Builder::slot_in(const Value& x, DType dtype) {
  if (x.is_number()) return number_slot(x.number, dtype);
  if (is_floating(x.dtype) == is_floating(dtype)) return x.slot;
  return append(Operation::astype, DType::float32, true, x.slot, x.slot, x.slot).slot;
}

Value Builder::arithmetic(Operation operation, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return value_of(folded(operation, a.number, b.number));
  DType dtype = common(a, b);
  if (operation == Operation::divide && !is_floating(dtype)) dtype = DType::float32;
  return pair(operation, dtype, a, b);
}

// Both operands are taken in `dtype`, which the result has too.
Value Builder::pair(Operation operation, DType dtype, const Value& a, const Value& b) {
  const int x = slot_in(a, dtype), y = slot_in(b, dtype);
  return append(operation, dtype, !is_floating(dtype), x, y, y);
}

Value Builder::of_two_floats(Operation operation, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return value_of(compute(operation, real(a.number), real(b.number), 0.0));
  const DType dtype = common(a, b);
  if (!is_floating(dtype)) float_wanted(word(operation), dtype);
  return pair(operation, dtype, a, b);
}

Value Builder::bitwise(Operation operation, const Value& a, const Value& b) {
  using O = Operation;
  const bool shifts = operation == O::bitwise_left_shift || operation == O::bitwise_right_shift;
  for (const Value& x : {a, b})
    if (x.is_number() ? is_real(x.number) : is_floating(x.dtype))
      fail(ErrorKind::type, word(operation), " takes integers", shifts ? "" : " or bool", ", got ",
           x.is_number() ? "a float" : to_string(x.dtype));
  if (!shifts && is_truth(a) && is_truth(b)) {
    if (operation == O::bitwise_xor) return logical_xor(a, b);
    return operation == O::bitwise_and ? logical_and(a, b) : logical_or(a, b);
  }
  if (a.is_number() && b.is_number())
    return value_of(compute(operation, integer(a.number), integer(b.number)));
  return pair(operation, common(a, b), a, b);
}

Value Builder::bitwise_invert(const Value& x) {
  if (is_truth(x)) return logical_not(x);
  if (x.is_number() ? is_real(x.number) : is_floating(x.dtype))
    fail(ErrorKind::type, "bitwise_invert takes integers or bool, got ",
         x.is_number() ? "a float" : to_string(x.dtype));
  if (x.is_number()) return value_of(~integer(x.number));
  return append(Operation::bitwise_invert, x.dtype, true, x.slot, x.slot, x.slot);
}

Value Builder::compare(Operation operation, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    const bool whole = !is_real(a.number) && !is_real(b.number);
    return value_of(whole ? holds(operation, integer(a.number), integer(b.number))
                          : holds(operation, real(a.number), real(b.number)));
  }
  const bool of_truth = (operation == Operation::equal || operation == Operation::not_equal) &&
                        is_truth(a) && is_truth(b);
  const DType dtype = of_truth ? DType::bool_ : common(a, b);
  const int x = slot_in(a, dtype), y = slot_in(b, dtype);
  return append(operation, DType::bool_, !is_floating(dtype), x, y, y);
}

Value Builder::unary(Operation operation, const Value& x, double parameter) {
  const bool of_integers = operands_of(operation) == Operands::numbers;
  if (x.is_number()) {
    if (is_real(x.number) || !of_integers)
      return value_of(compute(operation, real(x.number), 0.0, parameter));
    const int64_t value = integer(x.number);
    if (value == std::numeric_limits<int64_t>::min()) beyond_64_bits();
    return value_of(compute(operation, value, int64_t(0)));
  }
  require_number(x.dtype);
  if (!of_integers && !is_floating(x.dtype)) float_wanted(word(operation), x.dtype);
  const bool has_parameter = operation == Operation::leaky_relu || operation == Operation::elu ||
                             operation == Operation::swish;
  const int b = has_parameter ? number_slot(parameter, DType::float32) : x.slot;
  return append(operation, x.dtype, !is_floating(x.dtype), x.slot, b, b);
}

Value Builder::rounded(Operation operation, const Value& x) {
  const bool is_whole = x.is_number() ? !is_real(x.number) : !is_floating(x.dtype);
  return is_whole ? positive(x) : unary(operation, x);
}

Value Builder::positive(const Value& x) {
  if (!x.is_number()) require_number(x.dtype);
  return x;
}

Value Builder::reciprocal(const Value& x) {
  if (!x.is_number() && !is_floating(x.dtype)) float_wanted("reciprocal", x.dtype);
  return arithmetic(Operation::divide, value_of(1.0), x);
}

// An integer is equal to itself, and its size less than an infinity.
Value Builder::is_nan(const Value& x) { return compare(Operation::not_equal, x, x); }

Value Builder::is_infinite(const Value& x) {
  if (!x.is_number() && !is_floating(x.dtype)) return compare(Operation::not_equal, x, x);
  return compare(Operation::equal, unary(Operation::abs, x), value_of(kInfinite));
}

Value Builder::is_finite(const Value& x) {
  if (!x.is_number() && !is_floating(x.dtype)) return compare(Operation::equal, x, x);
  return compare(Operation::less, unary(Operation::abs, x), value_of(kInfinite));
}

Value Builder::sign_bit(const Value& x) {
  return compare(Operation::less, of_two_floats(Operation::copysign, value_of(1.0), x),
                 value_of(0.0));
}

// The slot of x != 0.
int Builder::truth(const Value& x) {
  if (x.is_number()) return number_slot(real(x.number) != 0, DType::bool_);
  return cast(x, DType::bool_).slot;
}

Value Builder::logical_and(const Value& a, const Value& b) {
  const int x = truth(a), y = truth(b);
  return append(Operation::minimum, DType::bool_, true, x, y, y);
}

Value Builder::logical_or(const Value& a, const Value& b) {
  const int x = truth(a), y = truth(b);
  return append(Operation::maximum, DType::bool_, true, x, y, y);
}

Value Builder::logical_xor(const Value& a, const Value& b) {
  const int x = truth(a), y = truth(b);
  return append(Operation::not_equal, DType::bool_, true, x, y, y);
}

Value Builder::logical_not(const Value& x) {
  if (x.is_number()) return value_of(real(x.number) == 0);
  const int a = truth(x), zero = number_slot(false, DType::bool_);
  return append(Operation::equal, DType::bool_, true, a, zero, zero);
}

Value Builder::where(const Value& condition, const Value& a, const Value& b) {
  if (!is_truth(condition))
    fail(ErrorKind::type, "the condition of where must be of dtype bool, got ",
         condition.is_number() ? "a number" : to_string(condition.dtype), "; write x != 0");
  DType dtype = a.dtype;
  if (a.is_number() && b.is_number()) {
    const bool both_truth =
        std::holds_alternative<bool>(a.number) && std::holds_alternative<bool>(b.number);
    dtype = is_real(a.number) || is_real(b.number) ? DType::float32
            : both_truth                           ? DType::bool_
                                                   : DType::int64;
  } else if (a.is_number() || b.is_number() || a.dtype != b.dtype) {
    const Value& array = a.is_number() ? b : a;
    const Number& other = a.is_number() ? a.number : b.number;
    const bool of_truth = (a.is_number() || b.is_number()) && array.dtype == DType::bool_ &&
                          std::holds_alternative<bool>(other);
    dtype = of_truth ? DType::bool_ : common(a, b);
  }
  const int which = truth(condition), x = slot_in(a, dtype), y = slot_in(b, dtype);
  return append(Operation::where, dtype, !is_floating(dtype), which, x, y);
}

Value Builder::cast(const Value& x, DType dtype) {
  if (x.is_number()) return {.slot = number_slot(x.number, dtype), .dtype = dtype};
  if (x.dtype == dtype) return x;
  return append(Operation::astype, dtype, !is_floating(x.dtype), x.slot, x.slot, x.slot);
}

void Builder::finish(const Value& x, std::optional<DType> dtype) {
  if (p_.num_inputs == 0)
    fail(ErrorKind::value, "no argument is an array; an expression needs one");
  const Value y = dtype ? cast(x, *dtype) : x;
  if (y.is_number()) fail(ErrorKind::value, "the result does not depend on an array");
  if (y.slot == kFirstStep + p_.num_steps - 1) return;
  // The result must stand last: a copy of it does if it does not.
  const Step copy{uint8_t(Operation::astype),
                  uint8_t(y.dtype),
                  uint8_t(y.slot),
                  uint8_t(y.slot),
                  uint8_t(y.slot),
                  uint8_t(!is_floating(y.dtype))};
  if (p_.num_steps == Program::kMaxSteps) fail(ErrorKind::value, "too many steps");
  p_.steps[size_t(p_.num_steps++)] = copy;
}

DType Program::slot_type(int slot) const {
  if (slot < kFirstNumber) return inputs[size_t(slot)];
  if (slot < kFirstStep) return number_types[size_t(slot - kFirstNumber)];
  return DType(steps[size_t(slot - kFirstStep)].dtype);
}

}  // namespace tensorcraft::expression
