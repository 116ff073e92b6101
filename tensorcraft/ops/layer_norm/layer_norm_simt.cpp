// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/layer_norm/layer_norm_simt.hpp"

#include "tensorcraft/ops/layer_norm/00_naive.cuh"
#include "tensorcraft/ops/layer_norm/01_block.cuh"
#include "tensorcraft/ops/layer_norm/02_vectorized.cuh"
#include "tensorcraft/ops/layer_norm/03_in_registers.cuh"

namespace tensorcraft::kernel::layer_norm {
namespace {

// Without weight and bias their type is that of x.
using Plain =
    simt::AnyOf<simt::Types<float, float>, simt::Types<f16, f16>, simt::Types<bf16, bf16>>;
using Weighted =
    simt::AnyOf<simt::Types<float, float>, simt::Types<f16, f16>, simt::Types<f16, float>,
                simt::Types<bf16, bf16>, simt::Types<bf16, float>>;

// Everything that can be fused, weight and bias apart, with one thread a row.
constexpr std::array<Config, 10> every_fusion(bool has_weight, bool has_bias) {
  std::array<Config, 10> all;
  for (int i = 0; i < 10; ++i)
    all[size_t(i)] = {.threads = 128,
                      .group = 1,
                      .activation = Activation(i / 2),
                      .has_residual = i % 2,
                      .has_weight = has_weight,
                      .has_bias = has_bias,
                      .nested = 1};
  return all;
}
constexpr auto kNaivePlain = every_fusion(false, false);
constexpr auto kNaiveWeight = every_fusion(true, false);
constexpr auto kNaiveBias = every_fusion(false, true);
constexpr auto kNaiveBoth = every_fusion(true, true);
constexpr std::array kNaiveFlat{Config{.threads = 128, .group = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { naive<T, W, C>(p); };
  return simt::concat(simt::instances<Params, kNaiveFlat>(Plain{}, rung),
                      simt::instances<Params, kNaivePlain>(Plain{}, rung, &Config::nested),
                      simt::instances<Params, kNaiveWeight>(Weighted{}, rung, &Config::nested),
                      simt::instances<Params, kNaiveBias>(Weighted{}, rung, &Config::nested),
                      simt::instances<Params, kNaiveBoth>(Weighted{}, rung, &Config::nested));
}
simt::InstanceList block_instances() { return {}; }
simt::InstanceList vectorized_instances() { return {}; }
simt::InstanceList in_registers_instances() { return {}; }

}  // namespace tensorcraft::kernel::layer_norm
