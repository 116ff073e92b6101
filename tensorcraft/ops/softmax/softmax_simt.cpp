// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax_simt.hpp"

#include "tensorcraft/ops/softmax/00_naive.cuh"
#include "tensorcraft/ops/softmax/01_block.cuh"
#include "tensorcraft/ops/softmax/02_online.cuh"
#include "tensorcraft/ops/softmax/03_in_registers.cuh"
#include "tensorcraft/ops/softmax/04_cluster.cuh"

namespace tensorcraft::kernel::softmax {
namespace {

using Float = simt::AnyOf<simt::Types<float>>;
using Halves = simt::AnyOf<simt::Types<f16>, simt::Types<bf16>>;
using Bf16 = simt::AnyOf<simt::Types<bf16>>;

constexpr std::array kNaive{Config{.threads = 128, .group = 1},
                            Config{.threads = 128, .group = 1, .nested = 1}};
constexpr std::array kBlock{
    Config{.threads = 128, .group = 128}, Config{.threads = 128, .group = 128, .nested = 1},
    Config{.threads = 256, .group = 256}, Config{.threads = 256, .group = 256, .nested = 1}};

template <int vector>
constexpr std::array kOnline{Config{.vector = vector}, Config{.vector = vector, .nested = 1}};

constexpr Config slots(int threads, int group, int vector, int slots, bool whole,
                       bool nested = false) {
  return {.threads = threads,
          .group = group,
          .vector = vector,
          .slots = slots,
          .whole = whole,
          .nested = nested};
}

// Rows of a warp and of a block, in single elements and in 16-byte accesses.
constexpr std::array kScalar{slots(128, 32, 1, 1, false), slots(128, 32, 1, 2, false),
                             slots(128, 32, 1, 4, false), slots(256, 256, 1, 5, false)};
constexpr std::array kFloats{slots(128, 32, 4, 1, false), slots(128, 32, 4, 1, false, true),
                             slots(128, 32, 4, 3, true), slots(256, 256, 4, 2, true),
                             slots(256, 256, 4, 3, false, true)};
constexpr std::array kHalves{slots(128, 32, 8, 1, false), slots(128, 32, 8, 1, false, true),
                             slots(128, 16, 8, 3, true), slots(256, 256, 8, 1, true),
                             slots(256, 256, 8, 2, false, true)};

template <int vector>
constexpr Config shared_row(int slots, int cluster, bool whole) {
  return {.vector = vector, .slots = slots, .whole = whole, .cluster = cluster};
}
constexpr std::array kClusterFloats{shared_row<4>(8, 2, true), shared_row<4>(5, 4, false)};
constexpr std::array kClusterHalves{shared_row<8>(5, 2, false), shared_row<8>(8, 2, true),
                                    shared_row<8>(8, 4, true)};
constexpr std::array kClusterOfEight{shared_row<8>(8, 8, false), shared_row<8>(8, 8, true)};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); });
}

simt::InstanceList block_instances() {
  return simt::instances<Params, kBlock>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { block<T, C>(p); });
}

simt::InstanceList online_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { online<T, C>(p); };
  return simt::concat(simt::instances<Params, kOnline<1>>(simt::Floats{}, rung),
                      simt::instances<Params, kOnline<4>>(Float{}, rung),
                      simt::instances<Params, kOnline<8>>(Halves{}, rung));
}

simt::InstanceList in_registers_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { in_registers<T, C>(p); };
  return simt::concat(simt::instances<Params, kScalar>(simt::Floats{}, rung),
                      simt::instances<Params, kFloats>(Float{}, rung),
                      simt::instances<Params, kHalves>(Halves{}, rung));
}

simt::InstanceList cluster_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { cluster<T, C>(p); };
  return simt::concat(simt::instances<Params, kClusterFloats>(Float{}, rung),
                      simt::instances<Params, kClusterHalves>(Halves{}, rung),
                      simt::instances<Params, kClusterOfEight>(Bf16{}, rung));
}

}  // namespace tensorcraft::kernel::softmax
