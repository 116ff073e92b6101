// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/problem.hpp"

#include "tensorcraft/ops/cumulative_sum/00_naive.cuh"
#include "tensorcraft/ops/cumulative_sum/01_row.cuh"

namespace tensorcraft::kernel::cumulative_sum {
namespace {

using simt::AnyOf, simt::Types, simt::list;

using O = Operation;
using All = AnyOf<Types<float>, Types<f16>, Types<bf16>, Types<int8_t>, Types<int16_t>,
                  Types<int32_t>, Types<int64_t>, Types<uint8_t>>;

constexpr std::array kNaive{Config{.threads = 128, .vector = 8, .nested = 1, .converts = 1}};
constexpr std::array kFloat{
    Config{.vector = 4, .wide = 1, .nested = 1, .converts = 1},
    Config{.vector = 4, .nested = 1, .converts = 1},
    Config{.threads = 64, .vector = 4, .wide = 1, .nested = 1, .converts = 1},
    Config{.threads = 64, .vector = 4, .nested = 1, .converts = 1}};
constexpr std::array kHalf{
    Config{.vector = 8, .wide = 1, .nested = 1, .converts = 1},
    Config{.threads = 64, .vector = 8, .wide = 1, .nested = 1, .converts = 1}};
constexpr std::array kInteger{Config{.vector = 4, .nested = 1, .converts = 1},
                              Config{.threads = 64, .vector = 4, .nested = 1, .converts = 1}};

// The same Config for other operations.
template <size_t n, size_t k>
constexpr auto each(const std::array<Operation, k>& operations, const std::array<Config, n>& of) {
  std::array<Config, n * k> all{};
  for (size_t i = 0; i < n * k; ++i) {
    all[i] = of[i % n];
    all[i].operation = operations[i / n];
  }
  return all;
}
constexpr std::array kSumAndProd{O::sum, O::prod};
constexpr auto kNaives = each(kSumAndProd, kNaive);
constexpr auto kFloats = each(kSumAndProd, kFloat);
constexpr auto kHalves = each(kSumAndProd, kHalf);
constexpr auto kIntegers = each(kSumAndProd, kInteger);
constexpr auto kNaiveFloatProducts = each(std::array{O::float_prod}, kNaive);
constexpr auto kIntegerFloatProducts = each(std::array{O::float_prod}, kInteger);
using Integers =
    AnyOf<Types<int8_t>, Types<int16_t>, Types<int32_t>, Types<int64_t>, Types<uint8_t>>;

}  // namespace

simt::OperatorInstances instances() {
  using Int = AnyOf<Types<int32_t>>;
  constexpr auto kNested = &Config::nested, kConverts = &Config::converts;
  return {{"naive", simt::concat(list<Naive, kNaives>(All{}, kNested, kConverts),
                                 list<Naive, kNaiveFloatProducts>(Integers{}, kNested, kConverts))},
          {"row", simt::concat(list<Row, kFloats>(simt::Float{}, kNested, kConverts),
                               list<Row, kHalves>(AnyOf<Types<bf16>>{}, kNested, kConverts),
                               list<Row, kIntegers>(Int{}, kNested, kConverts),
                               list<Row, kIntegerFloatProducts>(Int{}, kNested, kConverts))}};
}

}  // namespace tensorcraft::kernel::cumulative_sum
