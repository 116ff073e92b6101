// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/merge_attention/problem.hpp"

#include "tensorcraft/ops/merge_attention/00_naive.cuh"
#include "tensorcraft/ops/merge_attention/01_vectorized.cuh"

namespace tensorcraft::kernel::merge_attention {
namespace {

using simt::concat, simt::list;

constexpr std::array kNaive{Config{.nested = 1}};
constexpr std::array kFloats{Config{.group = 4}, Config{.group = 16}, Config{.group = 32}};
constexpr std::array kHalves{Config{.group = 4}, Config{.group = 8}, Config{.group = 16},
                             Config{.group = 32}};
constexpr std::array kNested{Config{.group = 16, .nested = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kNaive>(simt::Floats{}, &Config::nested)},
          {"vectorized", concat(list<Vectorized, kFloats>(simt::Float{}),
                                list<Vectorized, kHalves>(simt::Halves{}),
                                list<Vectorized, kNested>(simt::Bf16{}))}};
}

}  // namespace tensorcraft::kernel::merge_attention
