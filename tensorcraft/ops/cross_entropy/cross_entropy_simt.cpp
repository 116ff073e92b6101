// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/cross_entropy/problem.hpp"

#include "tensorcraft/ops/cross_entropy/00_naive.cuh"
#include "tensorcraft/ops/cross_entropy/01_online.cuh"
#include "tensorcraft/ops/cross_entropy/reduce.cuh"

namespace tensorcraft::kernel::cross_entropy {
namespace {

using simt::AnyOf, simt::Types;

using All = simt::Pairs<Types<float, f16, bf16>, Types<int32_t, int64_t>>;
using Two = AnyOf<Types<float, int32_t>, Types<bf16, int64_t>>;

constexpr std::array kNaive{Config{.threads = 128, .group = 1, .loads = 1, .nested = 1}};
constexpr std::array kOnline{Config{.threads = 128, .group = 32, .nested = 1},
                             Config{.threads = 128, .group = 128, .nested = 1},
                             Config{.threads = 512, .group = 512, .nested = 1}};
constexpr std::array kReduce{ReduceConfig{.threads = 32}, ReduceConfig{.threads = 128},
                             ReduceConfig{.threads = 1024}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kNaive>(All{}, &Config::nested)},
          {"online", simt::list<Online, kOnline>(Two{}, &Config::nested)},
          {"reduce", simt::list<Reduce, kReduce>(AnyOf<Types<>>{})}};
}

}  // namespace tensorcraft::kernel::cross_entropy
