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
    return float();  // float16 with bfloat16
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
using Numbers = Unary<float, f16, bf16, int32_t, int64_t>;
using Floats = Unary<float, f16, bf16>;
using Bits = Unary<uint8_t, int16_t, int32_t, int64_t>;

constexpr std::array kBinary{O::add, O::subtract, O::multiply, O::maximum, O::minimum};
constexpr std::array kFormulas{O::exp, O::tanh, O::sigmoid, O::relu, O::leaky_relu,
                               O::elu, O::silu, O::swish,   O::gelu, O::gelu_tanh};

// A Config for each operation, equal in everything else.
template <size_t n>
constexpr std::array<Config, n> each(const std::array<Operation, n>& operations, Config config) {
  std::array<Config, n> all{};
  for (size_t i = 0; i < n; ++i) {
    all[i] = config;
    all[i].operation = operations[i];
  }
  return all;
}

constexpr Config kAnyStrides{.vectors = 1, .nested = 1};
constexpr Config kMerged{.vectors = 1};
constexpr auto kNaiveBinary = each(kBinary, kAnyStrides);
constexpr auto kNaiveBinaryMerged = each(kBinary, kMerged);
constexpr auto kNaiveDivide = each(std::array{O::divide}, kAnyStrides);
constexpr auto kNaiveDivideMerged = each(std::array{O::divide}, kMerged);
constexpr auto kNaiveNegative = each(std::array{O::negative}, kAnyStrides);
constexpr auto kNaiveFormulas = each(kFormulas, kAnyStrides);
constexpr auto kNaiveFormulasMerged = each(kFormulas, kMerged);
constexpr auto kNaiveMoves = each(std::array{O::copy, O::fill}, kAnyStrides);
constexpr auto kNaiveAstype = each(std::array{O::astype}, kAnyStrides);

constexpr auto kBinaryOne = each(kBinary, {.vectors = 1});
constexpr auto kBinarySingleA =
    each(std::array{O::add, O::subtract}, {.vectors = 1, .single_a = 1});
constexpr auto kBinarySingleB = each(kBinary, {.vectors = 1, .single_b = 1});
constexpr auto kDivideOne = each(std::array{O::divide}, {.vectors = 1});
constexpr auto kDivideSingleA = each(std::array{O::divide}, {.vectors = 1, .single_a = 1});
constexpr auto kDivideSingleB = each(std::array{O::divide}, {.vectors = 1, .single_b = 1});
constexpr auto kNegativeOne = each(std::array{O::negative}, {.vectors = 1});
constexpr auto kFormulasOne = each(kFormulas, {.vectors = 1});
constexpr auto kMovesOne = each(std::array{O::copy, O::fill}, {.vectors = 1});
constexpr auto kAstypeOne = each(std::array{O::astype}, {.vectors = 1});
// What a large tensor takes.
constexpr auto kManyFloats = each(std::array{O::add}, {.vectors = 4});
constexpr auto kManyOfFormula = each(std::array{O::silu}, {.threads = 128, .vectors = 2});
constexpr auto kManyHalves = each(std::array{O::add}, {.vectors = 2});
constexpr auto kManyFills = each(std::array{O::fill}, {.vectors = 4});
constexpr auto kManyAstype = each(std::array{O::astype}, {.vectors = 4});

// Every pair with A in front.
template <class A, class... B>
InstanceList naive_binary() {
  return simt::concat(list<Naive, kNaiveBinary>(WithEach<A, B...>{}, &Config::nested),
                      list<Naive, kNaiveDivide>(OverEach<A, B...>{}, &Config::nested));
}

// The same dtype is a copy.
template <class From, class To>
InstanceList naive_astype() {
  if constexpr (std::is_same_v<From, To>)
    return {};
  else
    return list<Naive, kNaiveAstype>(AnyOf<Types<From, From, To>>{}, &Config::nested);
}
template <class... From>
InstanceList naive_astype_to_each() {
  const auto from = []<class T> { return simt::concat({}, naive_astype<T, From>()...); };
  return simt::concat({}, from.template operator()<From>()...);
}

InstanceList naive_instances() {
  return simt::concat(list<Naive, kNaiveBinaryMerged>(Unary<float>{}),
                      list<Naive, kNaiveDivideMerged>(Unary<float>{}),
                      list<Naive, kNaiveFormulasMerged>(Unary<float>{}),
                      naive_binary<float, float, f16, bf16, int32_t, int64_t>(),
                      naive_binary<f16, float, f16, bf16, int32_t, int64_t>(),
                      naive_binary<bf16, float, f16, bf16, int32_t, int64_t>(),
                      naive_binary<int32_t, float, f16, bf16, int32_t, int64_t>(),
                      naive_binary<int64_t, float, f16, bf16, int32_t, int64_t>(),
                      list<Naive, kNaiveNegative>(Numbers{}, &Config::nested),
                      list<Naive, kNaiveFormulas>(Floats{}, &Config::nested),
                      list<Naive, kNaiveMoves>(Bits{}, &Config::nested),
                      naive_astype_to_each<float, f16, bf16, e4m3, e5m2, int8_t, int16_t, int32_t,
                                           int64_t, uint8_t, bool>());
}

InstanceList vectorized_instances() {
  using Integers = AnyOf<Types<int32_t, int32_t, float>, Types<int64_t, int64_t, float>>;
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
      list<Vectorized, kBinaryOne>(Numbers{}), list<Vectorized, kBinaryOne>(Mixed{}),
      list<Vectorized, kBinarySingleA>(Unary<float, bf16>{}),
      list<Vectorized, kBinarySingleB>(Unary<float, f16, int32_t>{}),
      list<Vectorized, kDivideOne>(Floats{}), list<Vectorized, kDivideOne>(Integers{}),
      list<Vectorized, kDivideSingleA>(Unary<float, bf16>{}),
      list<Vectorized, kDivideSingleB>(Unary<float, f16>{}),
      list<Vectorized, kNegativeOne>(Numbers{}), list<Vectorized, kFormulasOne>(Floats{}),
      list<Vectorized, kMovesOne>(Bits{}), list<Vectorized, kAstypeOne>(FromFloat{}),
      list<Vectorized, kAstypeOne>(ToFloat{}), list<Vectorized, kManyFloats>(Unary<float>{}),
      list<Vectorized, kManyOfFormula>(Unary<float>{}),
      list<Vectorized, kManyHalves>(Unary<bf16>{}), list<Vectorized, kManyOfFormula>(Unary<bf16>{}),
      list<Vectorized, kManyFills>(Bits{}),
      list<Vectorized, kManyAstype>(AnyOf<Types<float, float, bf16>>{}));
}

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", naive_instances()}, {"vectorized", vectorized_instances()}};
}

}  // namespace tensorcraft::kernel::elementwise
