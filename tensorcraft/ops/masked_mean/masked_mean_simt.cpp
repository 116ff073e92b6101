// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/masked_mean/masked_mean_simt.hpp"

#include "tensorcraft/ops/masked_mean/00_naive.cuh"
#include "tensorcraft/ops/masked_mean/01_block.cuh"

namespace tensorcraft::kernel::masked_mean {
namespace {

using All =
    simt::AnyOf<simt::Types<float, int32_t>, simt::Types<float, int64_t>, simt::Types<f16, int32_t>,
                simt::Types<f16, int64_t>, simt::Types<bf16, int32_t>, simt::Types<bf16, int64_t>>;

constexpr std::array kConfigs{Config{.threads = 256}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kConfigs>(
      All{}, []<class T, class Length, Config C>(const Params& p) { naive<T, Length, C>(p); });
}

simt::InstanceList block_instances() {
  return simt::instances<Params, kConfigs>(
      All{}, []<class T, class Length, Config C>(const Params& p) { block<T, Length, C>(p); });
}

}  // namespace tensorcraft::kernel::masked_mean
