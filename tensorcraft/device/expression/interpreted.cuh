// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps read as data, one element a thread.
#include "tensorcraft/device/expression/functors.cuh"
#include "tensorcraft/device/expression/step.h"

namespace tensorcraft::expression {

// DType's values, by name.
enum class Element : uint8_t { f32, f16, bf16, e4m3, e5m2, i8, i16, i32, i64, u8, boolean };

// Calls f with a null pointer of the type of an element.
template <class F>
TC_DEVICE auto with_element(Element element, const F& f) {
  switch (element) {
    case Element::f32:
      return f(static_cast<float*>(nullptr));
    case Element::f16:
      return f(static_cast<f16*>(nullptr));
    case Element::bf16:
      return f(static_cast<bf16*>(nullptr));
    case Element::e4m3:
      return f(static_cast<e4m3*>(nullptr));
    case Element::e5m2:
      return f(static_cast<e5m2*>(nullptr));
    case Element::i8:
      return f(static_cast<int8_t*>(nullptr));
    case Element::i16:
      return f(static_cast<int16_t*>(nullptr));
    case Element::i32:
      return f(static_cast<int32_t*>(nullptr));
    case Element::i64:
      return f(static_cast<int64_t*>(nullptr));
    case Element::u8:
      return f(static_cast<uint8_t*>(nullptr));
    default:
      return f(static_cast<bool*>(nullptr));
  }
}

// A slot: a float of any width as float32, anything else as 64 bits.
TC_DEVICE uint64_t slot_of(float x) { return bit_cast<uint32_t>(x); }
TC_DEVICE uint64_t slot_of(int64_t x) { return uint64_t(x); }
TC_DEVICE float float_of(uint64_t slot) { return bit_cast<float>(uint32_t(slot)); }

template <class T>
TC_DEVICE uint64_t slot_of_element(T x) {
  if constexpr (FloatingPoint<T>)
    return slot_of(float(x));
  else
    return slot_of(int64_t(x));
}

// Conversions by a dtype that is known at run time: x as an element of it has it, an element as a
// slot, a slot into memory. (A device compiler takes no generic lambda here.)
template <class X>
struct Rounded {
  X x;
  template <class T>
  TC_DEVICE uint64_t operator()(T*) const {
    return slot_of_element(convert_element<T>(x));
  }
};
struct Loaded {
  const void* data;
  int64_t at;
  template <class T>
  TC_DEVICE uint64_t operator()(T*) const {
    const T x = T(static_cast<const InMemory<T>*>(data)[at]);
    if constexpr (is_half_v<T>)
      return slot_of(copysignf(float(x), sign_source(x)));  // copysign and signbit see it
    else
      return slot_of_element(x);
  }
};
struct Stored {
  void* data;
  int64_t at;
  uint64_t slot;
  template <class T>
  TC_DEVICE void operator()(T*) const {
    T& to = static_cast<T*>(data)[at];
    if constexpr (FloatingPoint<T>)
      to = T(float_of(slot));
    else
      to = T(int64_t(slot));
  }
};

struct NextAfter {
  float a, b;
  template <class T>
  TC_DEVICE uint64_t operator()(T*) const {
    if constexpr (FloatingPoint<T> && sizeof(T) > 1)
      return slot_of_element(next_after(T(a), T(b)));
    else
      return 0;  // no operation gives it
  }
};

template <class X>
TC_DEVICE uint64_t rounded_slot(uint8_t dtype, X x) {
  return with_element(Element(dtype), Rounded<X>{x});
}

// The functor that is wanted, if it takes one of `taken`; else y.
template <template <Operation> class F, Operands... taken, class X>
TC_DEVICE X apply_one_of(Operation wanted, X a, X b, X y) {
#define TC_APPLY(name, inputs, operands)                \
  if constexpr (((Operands::operands == taken) || ...)) \
    if (wanted == Operation::name) y = X(F<Operation::name>()(a, b));
  TC_OPERATIONS(TC_APPLY)
#undef TC_APPLY
  return y;
}

// `is_short`: the result has 2 bytes, as FunctorFor knows it.
TC_DEVICE float apply(Operation operation, bool is_short, float a, float b) {
  using O = Operands;
  const float y = apply_one_of<Functor, O::floats, O::numbers>(operation, a, b, a);
  return is_short ? apply_one_of<ShortFunctor, O::formula>(operation, a, b, y)
                  : apply_one_of<Functor, O::formula>(operation, a, b, y);
}
TC_DEVICE int64_t apply(Operation operation, bool, int64_t a, int64_t b) {
  return apply_one_of<Functor, Operands::integers, Operands::numbers>(operation, a, b, a);
}
template <class X>
TC_DEVICE bool compare(Operation operation, X a, X b) {
  return apply_one_of<Functor, Operands::compared>(operation, a, b, a) != X(0);
}

template <class X>
TC_DEVICE uint64_t take(const Step& s, X a, X b) {
  const auto operation = Operation(s.operation);
  if (operation >= Operation::equal) return slot_of(int64_t(compare(operation, a, b)));
  if (operation == Operation::astype) return rounded_slot(s.dtype, a);
  if (operation == Operation::nextafter)
    return with_element(Element(s.dtype), NextAfter{float(a), float(b)});
  const bool is_short = Element(s.dtype) == Element::f16 || Element(s.dtype) == Element::bf16;
  return rounded_slot(s.dtype, apply(operation, is_short, a, b));
}

// The value of each step, after those of inputs and numbers.
TC_DEVICE void take_steps(const Step* steps, int num_steps, uint64_t* slots) {
  for (int i = 0; i < num_steps; ++i) {
    const Step& s = steps[i];
    uint64_t a = slots[s.a], b = slots[s.b];
    if (Operation(s.operation) == Operation::where) {
      a = a ? b : slots[s.c];
      slots[kFirstStep + i] =
          s.integer ? rounded_slot(s.dtype, int64_t(a)) : rounded_slot(s.dtype, float_of(a));
    } else {
      slots[kFirstStep + i] =
          s.integer ? take(s, int64_t(a), int64_t(b)) : take(s, float_of(a), float_of(b));
    }
  }
}

}  // namespace tensorcraft::expression
