// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/spmm/problem.hpp"

#include "tensorcraft/device/interpreted_semiring.cuh"
#include "tensorcraft/ops/spmm/00_naive.cuh"
#include "tensorcraft/ops/spmm/01_warp.cuh"
#include "tensorcraft/ops/spmm/02_merge_path.cuh"
#include "tensorcraft/ops/spmm/finish.cuh"
#include "tensorcraft/ops/spmm/pack.cuh"
#include "tensorcraft/ops/spmm/partition.cuh"

namespace tensorcraft::kernel::spmm {
namespace {

using FloatInt32 = simt::AnyOf<simt::Types<float, int32_t>>;
using All = simt::Pairs<simt::Types<float, f16, bf16>, simt::Types<int32_t, int64_t>>;
using Fast = simt::AnyOf<simt::Types<float, int32_t>, simt::Types<f16, int32_t>,
                         simt::Types<bf16, int32_t>, simt::Types<float, int64_t>>;
constexpr std::array kBoth{Config{}, Config{.semiring = Semiring::interpreted}};
constexpr std::array kVectors{Config{}, Config{.vector = 2}, Config{.vector = 4}};
constexpr std::array kReading{Config{.semiring = Semiring::interpreted}};
constexpr auto& kPlain = simt::kDefaultConfig<Config>;

template <class Rung, const auto& kConfigs>
simt::InstanceList fast() {
  return simt::concat(simt::list<Rung, kConfigs>(Fast{}), simt::list<Rung, kReading>(FloatInt32{}));
}

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kBoth>(All{})},
          {"warp", fast<Warp, kVectors>()},
          {"merge_path", fast<MergePath, kVectors>()},
          {"finish", fast<Finish, kPlain>()},
          {"partition", simt::list<Partition, kPlain>(
                            simt::AnyOf<simt::Types<int32_t>, simt::Types<int64_t>>{})},
          {"pack",
           simt::list<Pack, kPlain>(simt::AnyOf<simt::Types<int16_t>, simt::Types<int32_t>>{})}};
}

}  // namespace tensorcraft::kernel::spmm
