// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pad/problem.hpp"

#include "tensorcraft/ops/pad/00_naive.cuh"
#include "tensorcraft/ops/pad/01_vectorized.cuh"

namespace tensorcraft::kernel::pad {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;
using simt::Bits;

// 64 bits count fewer elements too.
constexpr std::array kOne{Config{.wide = 1}};
constexpr std::array kMany{Config{.vectors = 2, .wide = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kOne>(Bits{}, &Config::wide)},
          {"vectorized", concat(list<Vectorized, kOne>(Bits{}, &Config::wide),
                                list<Vectorized, kMany>(AnyOf<Types<int16_t>>{}, &Config::wide))}};
}

}  // namespace tensorcraft::kernel::pad
