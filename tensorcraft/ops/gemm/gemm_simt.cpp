// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_simt.hpp"

#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/01_coalesced.cuh"
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tensorcraft/ops/gemm/03_thread_tiled.cuh"
#include "tensorcraft/ops/gemm/04_vectorized.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"

namespace tensorcraft::kernel::gemm {
namespace {

using All = simt::AnyOf<simt::Types<float, float>, simt::Types<f16, f16>, simt::Types<f16, float>,
                        simt::Types<bf16, bf16>, simt::Types<bf16, float>>;

// The same Config with every epilogue there is.
constexpr std::array<Config, 20> every_epilogue(const Config& config) {
  std::array<Config, 20> all;
  for (int i = 0; i < 20; ++i) {
    all[size_t(i)] = config;
    all[size_t(i)].activation = Activation(i / 4);
    all[size_t(i)].has_c = i / 2 % 2;
    all[size_t(i)].has_bias = i % 2;
  }
  return all;
}

constexpr auto kNaive = every_epilogue({.block_m = 32, .block_n = 8, .threads = 256});
}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      All{}, []<class T, class Out, Config C>(const Params& p) { naive<T, Out, C>(p); },
      &Config::a_layout, &Config::b_layout);
}
simt::InstanceList coalesced_instances() { return {}; }
simt::InstanceList block_tiled_instances() { return {}; }
simt::InstanceList thread_tiled_instances() { return {}; }
simt::InstanceList vectorized_instances() { return {}; }
simt::InstanceList tensor_core_instances() { return {}; }

}  // namespace tensorcraft::kernel::gemm
