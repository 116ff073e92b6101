// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/causal_conv1d/problem.hpp"

#include "tensorcraft/ops/causal_conv1d/00_naive.cuh"
#include "tensorcraft/ops/causal_conv1d/01_vectorized.cuh"
#include "tensorcraft/ops/causal_conv1d/plan.h"

namespace tensorcraft::kernel::causal_conv1d {
namespace {

constexpr std::array<Config, 3> widths(int vector) {
  return {vectorized_config(vector, 2), vectorized_config(vector, 3), vectorized_config(vector, 4)};
}
constexpr std::array kFloats = widths(4), kHalves = widths(8);

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(simt::Floats{})},
          {"vectorized", simt::concat(simt::list<Vectorized, kFloats>(simt::Float{}),
                                      simt::list<Vectorized, kHalves>(simt::Halves{}))}};
}

}  // namespace tensorcraft::kernel::causal_conv1d
