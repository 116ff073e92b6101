// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/problem.hpp"

#include "tensorcraft/ops/masked_mean/00_naive.cuh"
#include "tensorcraft/ops/masked_mean/01_block.cuh"

namespace tensorcraft::kernel::masked_mean {

simt::OperatorInstances instances() {
  using Types = simt::Pairs<simt::Types<float, f16, bf16>, simt::Types<int32_t, int64_t>>;
  return {{"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(Types{})},
          {"block", simt::list<Block, simt::kDefaultConfig<Config>>(Types{})}};
}

}  // namespace tensorcraft::kernel::masked_mean
