// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cumulative_sum/problem.hpp"

#include "tensorcraft/ops/cumulative_sum/00_naive.cuh"
#include "tensorcraft/ops/cumulative_sum/01_row.cuh"

namespace tensorcraft::kernel::cumulative_sum {
namespace {

using simt::AnyOf, simt::Types, simt::list;

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

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kNaive>(All{}, &Config::nested, &Config::converts)},
          {"row",
           simt::concat(
               list<Row, kFloat>(simt::Float{}, &Config::nested, &Config::converts),
               list<Row, kHalf>(AnyOf<Types<bf16>>{}, &Config::nested, &Config::converts),
               list<Row, kInteger>(AnyOf<Types<int32_t>>{}, &Config::nested, &Config::converts))}};
}

}  // namespace tensorcraft::kernel::cumulative_sum
