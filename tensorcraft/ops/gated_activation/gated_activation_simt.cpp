// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gated_activation/gated_activation_simt.hpp"

#include "tensorcraft/ops/gated_activation/00_naive.cuh"
#include "tensorcraft/ops/gated_activation/01_vectorized.cuh"

namespace tensorcraft::kernel::gated_activation {
namespace {

using simt::AnyOf, simt::Types;

constexpr std::array kNaive{Config{.gate = Gate::silu, .nested = 1},
                            Config{.gate = Gate::gelu, .nested = 1},
                            Config{.gate = Gate::gelu_tanh, .nested = 1}};
// Short rows of each gate; a row of more than one tile.
constexpr std::array kShort{Config{.gate = Gate::silu, .group = 8},
                            Config{.gate = Gate::gelu, .group = 8},
                            Config{.gate = Gate::gelu_tanh, .group = 8}};
constexpr std::array kTiles{Config{.gate = Gate::silu, .group = 64, .vectors = 2}};
constexpr std::array kNested{Config{.gate = Gate::silu, .group = 8, .nested = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); }, &Config::nested);
}

simt::InstanceList vectorized_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { vectorized<T, C>(p); };
  return simt::concat(simt::instances<Params, kShort>(AnyOf<Types<float>, Types<bf16>>{}, rung),
                      simt::instances<Params, kTiles>(AnyOf<Types<float>, Types<bf16>>{}, rung),
                      simt::instances<Params, kNested>(AnyOf<Types<bf16>>{}, rung));
}

}  // namespace tensorcraft::kernel::gated_activation
