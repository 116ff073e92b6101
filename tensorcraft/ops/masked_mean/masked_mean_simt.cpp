// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/problem.hpp"

#include "tensorcraft/ops/masked_mean/00_naive.cuh"
#include "tensorcraft/ops/masked_mean/01_block.cuh"

namespace tensorcraft::kernel::masked_mean {
namespace {

using All =
    simt::AnyOf<simt::Types<float, int32_t>, simt::Types<float, int64_t>, simt::Types<f16, int32_t>,
                simt::Types<f16, int64_t>, simt::Types<bf16, int32_t>, simt::Types<bf16, int64_t>>;

constexpr std::array kConfigs{Config{.threads = 256}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kConfigs>(All{})},
          {"block", simt::list<Block, kConfigs>(All{})}};
}

}  // namespace tensorcraft::kernel::masked_mean
