// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pool2d/problem.hpp"

#include "tensorcraft/ops/pool2d/00_naive.cuh"
#include "tensorcraft/ops/pool2d/01_vectorized.cuh"

namespace tensorcraft::kernel::pool2d {
namespace {

using simt::list;

constexpr std::array<Config, 2> both(int vector) {
  return {Config{.vector = vector}, Config{.vector = vector, .mean = 1}};
}
constexpr std::array kElements = both(1), kFloats = both(4), kHalves = both(8);

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kElements>(simt::Floats{})},
          {"vectorized", simt::concat(list<Vectorized, kFloats>(simt::Float{}),
                                      list<Vectorized, kHalves>(simt::Halves{}))}};
}

}  // namespace tensorcraft::kernel::pool2d
