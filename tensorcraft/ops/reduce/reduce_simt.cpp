// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/problem.hpp"

#include "tensorcraft/ops/reduce/00_naive.cuh"
#include "tensorcraft/ops/reduce/01_row.cuh"
#include "tensorcraft/ops/reduce/02_column.cuh"
#include "tensorcraft/ops/reduce/combine.cuh"

namespace tensorcraft::kernel::reduce {
namespace {

using O = Operation;
using simt::AnyOf, simt::Types, simt::concat, simt::list;

using simt::Bf16, simt::Float;
using Bytes = AnyOf<Types<uint8_t>>;
using Integers =
    AnyOf<Types<int8_t>, Types<int16_t>, Types<int32_t>, Types<int64_t>, Types<uint8_t>>;
// What any, all and count look at: int8 is as uint8.
using Words = AnyOf<Types<int16_t>, Types<int32_t>, Types<int64_t>, Types<uint8_t>>;

template <size_t n>
constexpr std::array<Config, n> each(const std::array<Operation, n>& operations, Config config) {
  std::array<Config, n> all{};
  for (size_t i = 0; i < n; ++i) {
    all[i] = config;
    all[i].operation = operations[i];
  }
  return all;
}

constexpr std::array kFloatOperations{O::sum,    O::count, O::mean, O::max, O::min, O::argmax,
                                      O::argmin, O::prod,  O::var,  O::std, O::any, O::all};
constexpr Config kThread{.threads = 128, .nested = 1};
constexpr auto kNaiveFloats = each(kFloatOperations, kThread);
constexpr auto kNaiveIntegers =
    each(std::array{O::sum, O::max, O::min, O::argmax, O::argmin, O::prod, O::float_prod}, kThread);
constexpr auto kNaiveTruths = each(std::array{O::any, O::all, O::count}, kThread);

constexpr std::array kSum{O::sum};
constexpr Config row_config(int group, int vector, int nested = 0) {
  return {.group = group, .vector = vector, .unroll = 4, .nested = nested};
}
constexpr auto kLanes = each(kFloatOperations, row_config(4, 4));
constexpr auto kWarp = each(std::array{O::sum, O::var}, row_config(32, 4));
// What blocks share serves them alone too.
constexpr Config shared(Config config) {
  config.shared = 1;
  return config;
}
constexpr Config long_config(int vector) {
  return shared({.group = 256, .vector = vector, .unroll = 8});
}
constexpr auto kBlock =
    each(std::array{O::max, O::argmax, O::argmin, O::var, O::std}, shared(row_config(256, 4)));
constexpr std::array kLong{long_config(4), long_config(1)};
constexpr Config short_config(int vector) {
  return shared({.group = 256, .vector = vector, .unroll = 2});
}
constexpr auto kShort =
    each(std::array{O::sum, O::max, O::argmax, O::var, O::prod}, short_config(4));
constexpr std::array kShortSingle{short_config(1)};
constexpr std::array kAlone{Config{.group = 256, .vector = 4, .unroll = 8}};
constexpr std::array kSingle{row_config(4, 1), row_config(32, 1)};
constexpr std::array kNested{row_config(4, 4, 1), row_config(32, 4, 1)};
constexpr auto kBytes = each(std::array{O::count, O::all}, row_config(4, 16));
constexpr std::array kHalves{row_config(4, 8), long_config(8), short_config(8)};

constexpr Config column_config(int group, int vector, int unroll, int nested = 0) {
  return shared({.group = group, .vector = vector, .unroll = unroll, .nested = nested});
}
constexpr auto kSums =
    each(std::array{O::sum, O::count, O::mean, O::prod, O::any, O::all}, column_config(4, 4, 8));
constexpr std::array kColumns{column_config(32, 4, 8), column_config(32, 1, 8),
                              column_config(4, 4, 4, 1)};
constexpr std::array kColumnsAlone{Config{.group = 32, .vector = 4, .unroll = 8}};
constexpr auto kOthers =
    each(std::array{O::max, O::min, O::argmax, O::argmin, O::var, O::std}, column_config(4, 4, 4));
constexpr std::array kColumnHalves{column_config(4, 8, 8)};
constexpr auto kColumnBytes = each(std::array{O::any}, column_config(8, 8, 4));

// Few parts an output, some, and many.
constexpr auto kThreadParts =
    each(std::array{O::sum, O::max, O::min, O::argmax, O::argmin, O::var, O::std}, {.group = 1});
constexpr auto kWarpParts =
    each(std::array{O::sum, O::max, O::argmax, O::prod, O::var, O::std}, {.group = 32});
constexpr auto kSumParts = each(kSum, {.group = 32});
constexpr auto kBlockParts = each(kSum, {.group = 256});

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive", concat(list<Naive, kNaiveFloats>(simt::Floats{}, &Config::nested),
                       list<Naive, kNaiveIntegers>(Integers{}, &Config::nested),
                       list<Naive, kNaiveTruths>(Words{}, &Config::nested))},
      {"row", concat(list<Row, kLanes>(Float{}), list<Row, kWarp>(Float{}),
                     list<Row, kAlone>(Float{}), list<Row, kBlock>(Float{}, &Config::shared),
                     list<Row, kLong>(Float{}, &Config::shared),
                     list<Row, kShort>(Float{}, &Config::shared),
                     list<Row, kShortSingle>(Float{}, &Config::shared), list<Row, kSingle>(Float{}),
                     list<Row, kNested>(Float{}), list<Row, kBytes>(Bytes{}),
                     list<Row, kHalves>(Bf16{}, &Config::shared))},
      {"column",
       concat(list<Column, kColumnsAlone>(Float{}), list<Column, kSums>(Float{}, &Config::shared),
              list<Column, kColumns>(Float{}, &Config::shared),
              list<Column, kOthers>(Float{}, &Config::shared),
              list<Column, kColumnHalves>(Bf16{}, &Config::shared),
              list<Column, kColumnBytes>(Bytes{}, &Config::shared))},
      {"combine", concat(list<Combine, kThreadParts>(Float{}), list<Combine, kWarpParts>(Float{}),
                         list<Combine, kBlockParts>(Float{}), list<Combine, kSumParts>(Bf16{}))}};
}

}  // namespace tensorcraft::kernel::reduce
