// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/attention_simt.hpp"

#include "tensorcraft/ops/attention/00_naive.cuh"
#include "tensorcraft/ops/attention/01_tiled.cuh"
#include "tensorcraft/ops/attention/02_tensor_core.cuh"

namespace tensorcraft::kernel::attention {
namespace {

using Halves = simt::AnyOf<simt::Types<f16>, simt::Types<bf16>>;

constexpr std::array kNaive{Config{}};
constexpr std::array kTiled{Config{.head_dim = 32, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 64, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 96, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 128, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 256, .block_m = 32, .block_n = 16}};
constexpr std::array kTensorCore{Config{.head_dim = 32, .block_m = 64, .block_n = 64},
                                 Config{.head_dim = 64, .block_m = 64, .block_n = 64},
                                 Config{.head_dim = 64, .block_m = 128, .block_n = 64},
                                 Config{.head_dim = 96, .block_m = 64, .block_n = 64},
                                 Config{.head_dim = 128, .block_m = 64, .block_n = 64},
                                 Config{.head_dim = 256, .block_m = 64, .block_n = 32}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); });
}

simt::InstanceList tiled_instances() {
  return simt::instances<Params, kTiled>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { tiled<T, C>(p); });
}

simt::InstanceList tensor_core_instances() {
  return simt::instances<Params, kTensorCore>(
      Halves{}, []<class T, Config C>(const Params& p) { tensor_core<T, C>(p); });
}

}  // namespace tensorcraft::kernel::attention
