// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_permute/problem.hpp"

#include "tensorcraft/ops/moe_permute/00_naive_sort.cuh"
#include "tensorcraft/ops/moe_permute/01_chunks.cuh"
#include "tensorcraft/ops/moe_permute/02_naive.cuh"
#include "tensorcraft/ops/moe_permute/03_rows.cuh"
#include "tensorcraft/ops/moe_permute/count.cuh"

namespace tensorcraft::kernel::moe_permute {
namespace {

using None = simt::AnyOf<simt::Types<>>;
constexpr auto& kConfigs = simt::kDefaultConfig<Config>;

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive_sort", simt::list<NaiveSort, kConfigs>(None{})},
          {"chunks", simt::list<Chunks, kConfigs>(None{})},
          {"count", simt::list<Count, kConfigs>(None{})},
          {"naive", simt::list<Naive, kConfigs>(simt::Bits{})},
          {"rows", simt::list<Rows, kConfigs>(simt::AnyOf<simt::Types<int64_t>>{})}};
}

}  // namespace tensorcraft::kernel::moe_permute
