// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/problem.hpp"

#include "tensorcraft/ops/elementwise/00_naive.cuh"
#include "tensorcraft/ops/elementwise/01_vectorized.cuh"

namespace tensorcraft::kernel::elementwise {
namespace {

using O = Operation;
using simt::AnyOf, simt::Types, simt::InstanceList, simt::list;

// What two operands of an operation give: the rule of elementwise.cpp, for types.
template <class A, class B>
auto common_of() {
  if constexpr (std::is_same_v<A, B>)
    return A();
  else if constexpr (FloatingPoint<A> != FloatingPoint<B>)
    return std::conditional_t<FloatingPoint<A>, A, B>();
  else if constexpr (sizeof(A) == sizeof(B))
    return std::conditional_t<FloatingPoint<A>, float, int16_t>();  // halves, or bytes
  else
    return std::conditional_t<(sizeof(A) > sizeof(B)), A, B>();
}
template <class A, class B>
using Common = decltype(common_of<A, B>());
template <class A, class B>
using Quotient = std::conditional_t<FloatingPoint<Common<A, B>>, Common<A, B>, float>;

template <class A, class... B>
using WithEach = AnyOf<Types<A, B, Common<A, B>>...>;
template <class A, class... B>
using OverEach = AnyOf<Types<A, B, Quotient<A, B>>...>;
template <class... T>
using Unary = AnyOf<Types<T, T, T>...>;
using Numbers = Unary<float, f16, bf16, int8_t, int16_t, int32_t, int64_t, uint8_t>;
using Floats = Unary<float, f16, bf16>;
using Bits = Unary<uint8_t, int16_t, int32_t, int64_t>;

// A Config for each operation, equal in everything else.
template <Config C, Operation... operations>
constexpr std::array kOf = [] {
  std::array all{(static_cast<void>(operations), C)...};
  size_t i = 0;
  ((all[i++].operation = operations), ...);
  return all;
}();
template <Config C>
constexpr auto kBinary = kOf<C, O::add, O::subtract, O::multiply, O::maximum, O::minimum>;
template <Config C>
constexpr auto kFormulas = kOf<C, O::exp, O::tanh, O::sigmoid, O::relu, O::leaky_relu, O::elu,
                               O::silu, O::swish, O::gelu, O::gelu_tanh>;
template <Config C>
constexpr auto kMoves = kOf<C, O::copy, O::fill>;

constexpr Config kAny{.vectors = 1, .nested = 1}, kOne{.vectors = 1};  // strides; vector in flight
constexpr Config kSingleA{.vectors = 1, .single_a = 1}, kSingleB{.vectors = 1, .single_b = 1};
constexpr Config kRepeatsA{.vectors = 1, .repeats_a = 1}, kRepeatsB{.vectors = 1, .repeats_b = 1};
// What a large tensor takes.
constexpr Config kTwo{.vectors = 2}, kFour{.vectors = 4}, kSmall{.threads = 128, .vectors = 2};

// Of any strides, merged into one axis or not.
template <const auto& kConfigs, class Combinations>
InstanceList naive(Combinations types) {
  return list<Naive, kConfigs>(types, &Config::nested);
}

// The same dtype is a copy.
template <class From, class To>
InstanceList naive_astype() {
  if constexpr (std::is_same_v<From, To>)
    return {};
  else
    return naive<kOf<kAny, O::astype>>(AnyOf<Types<From, From, To>>{});
}

template <class... From>
InstanceList naive_astype_to_each() {
  const auto from = []<class T> { return simt::concat({}, naive_astype<T, From>()...); };
  return simt::concat({}, from.template operator()<From>()...);
}

// Every pair.
template <class... T>
InstanceList naive_binary() {
  const auto with = []<class A> {
    return simt::concat(naive<kBinary<kAny>>(WithEach<A, T...>{}),
                        naive<kOf<kAny, O::divide>>(OverEach<A, T...>{}));
  };
  return simt::concat({}, with.template operator()<T>()...);
}

InstanceList naive_instances() {
  using Float = Unary<float>;
  return simt::concat(list<Naive, kBinary<kOne>>(Float{}),
                      list<Naive, kOf<kOne, O::divide>>(Float{}),
                      list<Naive, kFormulas<kOne>>(Float{}),
                      naive_binary<float, f16, bf16, int8_t, int16_t, int32_t, int64_t, uint8_t>(),
                      naive<kOf<kAny, O::negative>>(Numbers{}), naive<kFormulas<kAny>>(Floats{}),
                      naive<kMoves<kAny>>(Bits{}),
                      naive_astype_to_each<float, f16, bf16, e4m3, e5m2, int8_t, int16_t, int32_t,
                                           int64_t, uint8_t, bool>());
}

InstanceList vectorized_instances() {
  using Integers = AnyOf<Types<int8_t, int8_t, float>, Types<int16_t, int16_t, float>,
                         Types<int32_t, int32_t, float>, Types<int64_t, int64_t, float>,
                         Types<uint8_t, uint8_t, float>>;
  using Mixed = AnyOf<Types<float, bf16, float>, Types<f16, bf16, float>, Types<f16, float, float>,
                      Types<int64_t, float, float>, Types<int64_t, int32_t, int64_t>>;
  using FromFloat =
      AnyOf<Types<float, float, f16>, Types<float, float, bf16>, Types<float, float, e4m3>,
            Types<float, float, e5m2>, Types<float, float, int8_t>, Types<float, float, int32_t>,
            Types<float, float, int64_t>, Types<float, float, uint8_t>, Types<float, float, bool>>;
  using ToFloat = AnyOf<Types<f16, f16, float>, Types<bf16, bf16, float>, Types<e4m3, e4m3, float>,
                        Types<int8_t, int8_t, float>, Types<int16_t, int16_t, float>,
                        Types<int32_t, int32_t, float>, Types<int64_t, int64_t, float>,
                        Types<uint8_t, uint8_t, float>, Types<bool, bool, float>>;
  return simt::concat(
      list<Vectorized, kBinary<kOne>>(Numbers{}), list<Vectorized, kBinary<kOne>>(Mixed{}),
      list<Vectorized, kOf<kSingleA, O::add, O::subtract>>(Unary<float, bf16>{}),
      list<Vectorized, kBinary<kSingleB>>(Unary<float, f16, int32_t>{}),
      list<Vectorized, kOf<kRepeatsA, O::add, O::subtract>>(Unary<float, bf16>{}),
      list<Vectorized, kBinary<kRepeatsB>>(Unary<float, bf16, int32_t>{}),
      list<Vectorized, kOf<kOne, O::divide>>(Floats{}),
      list<Vectorized, kOf<kOne, O::divide>>(Integers{}),
      list<Vectorized, kOf<kSingleA, O::divide>>(Unary<float, bf16>{}),
      list<Vectorized, kOf<kSingleB, O::divide>>(Unary<float, f16>{}),
      list<Vectorized, kOf<kOne, O::negative>>(Numbers{}),
      list<Vectorized, kFormulas<kOne>>(Floats{}), list<Vectorized, kMoves<kOne>>(Bits{}),
      list<Vectorized, kOf<kOne, O::astype>>(FromFloat{}),
      list<Vectorized, kOf<kOne, O::astype>>(ToFloat{}),
      list<Vectorized, kOf<kFour, O::add>>(Unary<float>{}),
      list<Vectorized, kOf<kSmall, O::silu>>(Unary<float>{}),
      list<Vectorized, kOf<kTwo, O::add>>(Unary<bf16>{}),
      list<Vectorized, kOf<kSmall, O::silu>>(Unary<bf16>{}),
      list<Vectorized, kOf<kFour, O::fill>>(Bits{}),
      list<Vectorized, kOf<kFour, O::astype>>(AnyOf<Types<float, float, bf16>>{}));
}

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", naive_instances()}, {"vectorized", vectorized_instances()}};
}

}  // namespace tensorcraft::kernel::elementwise
