// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/group_norm/group_norm_simt.hpp"

#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/group_norm/00_naive.cuh"
#include "tensorcraft/ops/group_norm/01_cluster.cuh"
#include "tensorcraft/ops/group_norm/02_in_registers.cuh"

namespace tensorcraft::kernel::group_norm {
namespace {

using simt::AnyOf, simt::Types, simt::InstanceList, simt::instances;

// Types of x and of weight and bias.
using Float = AnyOf<Types<float, float>>;
using Half = AnyOf<Types<bf16, float>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>>;

constexpr std::array kNaive{Config{.threads = 128, .group = 1, .nested = 1}};

constexpr Config shared(int vector, int cluster, bool planes) {
  return {.vector = vector, .slots = 2, .cluster = cluster, .planes = planes};
}
constexpr std::array kClusterFloats{shared(4, 1, false), shared(4, 8, true), shared(1, 2, true)};
constexpr std::array kClusterHalves{shared(8, 4, true), shared(8, 1, false), shared(1, 1, true)};

constexpr Config slots(int group, int vector, int slots, bool whole, bool planes) {
  return {.threads = op::warp_row_threads(group, vector * slots),
          .group = group,
          .vector = vector,
          .slots = slots,
          .whole = whole,
          .planes = planes};
}
constexpr std::array kFloats{slots(8, 4, 1, false, false), slots(32, 4, 8, true, true),
                             slots(128, 4, 8, true, true), slots(32, 1, 2, false, true)};
constexpr std::array kHalves{slots(8, 8, 1, false, false), slots(32, 8, 4, true, true),
                             slots(128, 8, 4, true, true)};

}  // namespace

InstanceList naive_instances() {
  return instances<Params, kNaive>(
      All{}, []<class T, class W, Config C>(const Params& p) { naive<T, W, C>(p); },
      &Config::nested);
}

InstanceList cluster_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { cluster<T, W, C>(p); };
  return simt::concat(instances<Params, kClusterFloats>(Float{}, rung),
                      instances<Params, kClusterHalves>(Half{}, rung));
}

InstanceList in_registers_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { in_registers<T, W, C>(p); };
  return simt::concat(instances<Params, kFloats>(Float{}, rung),
                      instances<Params, kHalves>(Half{}, rung));
}

}  // namespace tensorcraft::kernel::group_norm
