// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmv/problem.hpp"

#include "tensorcraft/device/interpreted_semiring.cuh"
#include "tensorcraft/ops/spmv/00_naive.cuh"
#include "tensorcraft/ops/spmv/01_warp.cuh"
#include "tensorcraft/ops/spmv/02_sub_warp.cuh"
#include "tensorcraft/ops/spmv/03_merge_path.cuh"
#include "tensorcraft/ops/spmv/finish.cuh"
#include "tensorcraft/ops/spmv/partition.cuh"

namespace tensorcraft::kernel::spmv {
namespace {

using Float = simt::Types<float>;
using Floats = simt::Types<float, f16, bf16>;
using Int32 = simt::Types<int32_t>;
using Int64 = simt::Types<int64_t>;
using All = simt::Pairs<Floats, simt::Types<int32_t, int64_t>>;
template <int group>
constexpr std::array kOfGroup{Config{.group = group},
                              Config{.group = group, .semiring = Semiring::interpreted}};
constexpr std::array kGroups{Config{.group = 2}, Config{.group = 4}, Config{.group = 8},
                             Config{.group = 16}, Config{.group = 32}};
constexpr std::array kReading{Config{.group = 2, .semiring = Semiring::interpreted},
                              Config{.group = 8, .semiring = Semiring::interpreted}};
constexpr auto& kPlain = simt::kDefaultConfig<Config>;

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kOfGroup<1>>(All{})},
          {"warp", simt::list<Warp, kOfGroup<32>>(All{})},
          {"sub_warp", simt::concat(simt::list<SubWarp, kGroups>(simt::Pairs<Floats, Int32>{}),
                                    simt::list<SubWarp, kGroups>(simt::Pairs<Float, Int64>{}),
                                    simt::list<SubWarp, kReading>(simt::Pairs<Float, Int32>{}))},
          {"merge_path", simt::list<MergePath, kOfGroup<1>>(All{})},
          {"finish", simt::list<Finish, kOfGroup<1>>(All{})},
          {"partition", simt::list<Partition, kPlain>(simt::AnyOf<Int32, Int64>{})}};
}

}  // namespace tensorcraft::kernel::spmv
