// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/instance.hpp"

#include "tensorcraft/ops/l2_normalize/00_naive.cuh"
#include "tensorcraft/ops/l2_normalize/01_block.cuh"
#include "tensorcraft/ops/l2_normalize/02_in_registers.cuh"
#include "tensorcraft/ops/l2_normalize/03_cluster.cuh"
#include "tensorcraft/ops/l2_normalize/plan.h"

namespace tensorcraft::kernel::l2_normalize {
namespace {

using simt::list;
constexpr std::array kNaive{Config{.threads = 128, .group = 1, .nested = 1}};
constexpr std::array kBlock{Config{.threads = 128, .group = 128, .nested = 1},
                            Config{.threads = 256, .group = 256, .nested = 1}};
constexpr Config row(int64_t cols, int vector, bool nested = false) {
  Config config = op::registers_config<Config>(cols, vector);
  config.nested = nested;
  return config;
}
constexpr std::array kScalar{row(7, 1), row(31, 1), row(50, 1), row(50, 1, true), row(1500, 1)};
constexpr std::array kFloats{row(32, 4), row(64, 4, true), row(384, 4), row(1024, 4)};
constexpr std::array kHalves{row(56, 8), row(64, 8, true), row(384, 8), row(1024, 8)};
constexpr std::array kFloatClusters{cluster_config(16400, 4), cluster_config(65536, 4)};
constexpr std::array kHalfClusters{cluster_config(16400, 8), cluster_config(131072, 8)};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kNaive>(simt::Floats{}, &Config::nested)},
          {"block", list<Block, kBlock>(simt::Floats{}, &Config::nested)},
          {"cluster", simt::concat(list<Cluster, kFloatClusters>(simt::Float{}),
                                   list<Cluster, kHalfClusters>(simt::Halves{}))},
          {"in_registers", simt::concat(list<InRegisters, kScalar>(simt::Floats{}),
                                        list<InRegisters, kFloats>(simt::Float{}),
                                        list<InRegisters, kHalves>(simt::Halves{}))}};
}

}  // namespace tensorcraft::kernel::l2_normalize
