// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rms_norm/rms_norm_simt.hpp"

#include "tensorcraft/ops/rms_norm/00_naive.cuh"
#include "tensorcraft/ops/rms_norm/01_block.cuh"
#include "tensorcraft/ops/rms_norm/02_vectorized.cuh"
#include "tensorcraft/ops/rms_norm/03_in_registers.cuh"

namespace tensorcraft::kernel::rms_norm {
namespace {

// Without a weight its type is that of x.
using Plain =
    simt::AnyOf<simt::Types<float, float>, simt::Types<f16, f16>, simt::Types<bf16, bf16>>;
using Weighted =
    simt::AnyOf<simt::Types<float, float>, simt::Types<f16, f16>, simt::Types<f16, float>,
                simt::Types<bf16, bf16>, simt::Types<bf16, float>>;
using Float = simt::AnyOf<simt::Types<float, float>>;
using Halves = simt::AnyOf<simt::Types<f16, f16>, simt::Types<bf16, bf16>>;
using HalvesWithFloat = simt::AnyOf<simt::Types<f16, float>, simt::Types<bf16, float>>;

constexpr std::array kNaivePlain{
    Config{.threads = 128, .group = 1, .nested = 1},
    Config{.threads = 128, .group = 1, .has_residual = 1, .nested = 1}};
constexpr std::array kNaiveWeighted{
    Config{.threads = 128, .group = 1, .has_weight = 1, .nested = 1},
    Config{.threads = 128, .group = 1, .has_residual = 1, .has_weight = 1, .nested = 1}};
constexpr std::array kNaiveFlat{Config{.threads = 128, .group = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { naive<T, W, C>(p); };
  return simt::concat(simt::instances<Params, kNaiveFlat>(Plain{}, rung),
                      simt::instances<Params, kNaivePlain>(Plain{}, rung, &Config::nested),
                      simt::instances<Params, kNaiveWeighted>(Weighted{}, rung, &Config::nested));
}
simt::InstanceList block_instances() { return {}; }
simt::InstanceList vectorized_instances() { return {}; }
simt::InstanceList in_registers_instances() { return {}; }

}  // namespace tensorcraft::kernel::rms_norm
