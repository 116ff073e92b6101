// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/group_norm/problem.hpp"

#include "tensorcraft/ops/group_norm/00_naive.cuh"
#include "tensorcraft/ops/group_norm/01_cluster.cuh"
#include "tensorcraft/ops/group_norm/02_in_registers.cuh"
#include "tensorcraft/ops/group_norm/plan.h"

namespace tensorcraft::kernel::group_norm {
namespace {

using simt::AnyOf, simt::Types, simt::list;

// Types of x and of weight and bias.
using Float = AnyOf<Types<float, float>>;
using Half = AnyOf<Types<bf16, float>>;
using All = simt::FloatsAndWider;

constexpr std::array kNaive{Config{.threads = 128, .group = 1, .nested = 1}};

constexpr Config shared(int vector, int cluster, bool planes) {
  return {.vector = vector, .slots = 2, .cluster = cluster, .planes = planes};
}
constexpr std::array kClusterFloats{shared(4, 1, false), shared(4, 8, true), shared(1, 2, true)};
constexpr std::array kClusterHalves{shared(8, 4, true), shared(8, 1, false), shared(1, 1, true)};

// Rows whose planes are whole accesses, but for the first.
constexpr Config row(int64_t cols, int vector, bool planes = true) {
  return in_registers_config(cols, vector, planes);
}
constexpr std::array kFloats{row(28, 4, false), row(1024, 4), row(4096, 4), row(50, 1)};
constexpr std::array kHalves{row(56, 8, false), row(1024, 8), row(4096, 8)};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kNaive>(All{}, &Config::nested)},
          {"cluster", simt::concat(list<Cluster, kClusterFloats>(Float{}),
                                   list<Cluster, kClusterHalves>(Half{}))},
          {"in_registers",
           simt::concat(list<InRegisters, kFloats>(Float{}), list<InRegisters, kHalves>(Half{}))}};
}

}  // namespace tensorcraft::kernel::group_norm
