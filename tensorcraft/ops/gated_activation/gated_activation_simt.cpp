// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gated_activation/problem.hpp"

#include "tensorcraft/ops/gated_activation/00_naive.cuh"
#include "tensorcraft/ops/gated_activation/01_vectorized.cuh"

namespace tensorcraft::kernel::gated_activation {
namespace {

using simt::AnyOf, simt::Types, simt::list;

constexpr std::array kNaive{Config{.gate = Activation::silu, .nested = 1},
                            Config{.gate = Activation::gelu, .nested = 1},
                            Config{.gate = Activation::gelu_tanh, .nested = 1}};
// Short rows of each gate; a row of more than one tile.
constexpr std::array kShort{Config{.gate = Activation::silu, .group = 8},
                            Config{.gate = Activation::gelu, .group = 8},
                            Config{.gate = Activation::gelu_tanh, .group = 8}};
constexpr std::array kTiles{Config{.gate = Activation::silu, .group = 64, .vectors = 2}};
constexpr std::array kNested{Config{.gate = Activation::silu, .group = 8, .nested = 1}};

}  // namespace

simt::OperatorInstances instances() {
  using Two = AnyOf<Types<float>, Types<bf16>>;
  return {
      {"naive", list<Naive, kNaive>(simt::Floats{}, &Config::nested)},
      {"vectorized", simt::concat(list<Vectorized, kShort>(Two{}), list<Vectorized, kTiles>(Two{}),
                                  list<Vectorized, kNested>(AnyOf<Types<bf16>>{}))}};
}

}  // namespace tensorcraft::kernel::gated_activation
