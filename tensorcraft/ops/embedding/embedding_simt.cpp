// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/problem.hpp"

#include "tensorcraft/ops/embedding/00_naive.cuh"
#include "tensorcraft/ops/embedding/01_vectorized.cuh"

namespace tensorcraft::kernel::embedding {
namespace {

// Any id with bits of any size.
using All = simt::Pairs<simt::Types<int32_t, int64_t>, simt::Types<uint8_t, int16_t, int32_t>>;

constexpr std::array kNaive{Config{.nested = 0}, Config{.nested = 1}};
constexpr std::array kVectorized{Config{.group = 4}, Config{.group = 32}};
constexpr std::array kVectorizedNested{
    Config{.group = 1, .nested = 1},  Config{.group = 2, .nested = 1},
    Config{.group = 4, .nested = 1},  Config{.group = 8, .nested = 1},
    Config{.group = 16, .nested = 1}, Config{.group = 32, .nested = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kNaive>(All{})},
          {"vectorized",
           simt::concat(simt::list<Vectorized, kVectorized>(All{}),
                        simt::list<Vectorized, kVectorizedNested>(All{}, &Config::nested))}};
}

}  // namespace tensorcraft::kernel::embedding
