// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/problem.hpp"

#include "tensorcraft/ops/attention/00_naive.cuh"
#include "tensorcraft/ops/attention/01_tiled.cuh"
#include "tensorcraft/ops/attention/02_tensor_core.cuh"
#include "tensorcraft/ops/attention/06_split_kv.cuh"
#include "tensorcraft/ops/attention/combine.cuh"
#include "tensorcraft/ops/attention/plan.h"

namespace tensorcraft::kernel::attention {
namespace {

using simt::Halves;
using Float8 = simt::AnyOf<simt::Types<e4m3>>;

constexpr std::array kNaive{Config{.head_dim = 256}, Config{.head_dim = 512}};
constexpr std::array kNaiveOfFloat8{
    naive_config(256, 256, OutputType::bfloat16), naive_config(256, 256, OutputType::float16),
    naive_config(256, 256, OutputType::float32), naive_config(512, 512, OutputType::bfloat16)};
constexpr std::array kTiled{Config{.head_dim = 32, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 64, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 96, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 128, .block_m = 64, .block_n = 32},
                            Config{.head_dim = 256, .block_m = 32, .block_n = 16}};
constexpr std::array kTiledOptions{
    Config{.head_dim = 64, .block_m = 64, .block_n = 32, .options = kRanges},
    Config{.head_dim = 64, .block_m = 64, .block_n = 32, .options = kSoftcap},
    Config{.head_dim = 64, .block_m = 64, .block_n = 32, .options = kMasks}};
constexpr std::array kCoreOptions{
    Config{.head_dim = 32, .block_m = 64, .block_n = 64, .options = kRanges},
    Config{.head_dim = 64, .block_m = 64, .block_n = 64, .options = kRanges},
    Config{.head_dim = 64, .block_m = 64, .block_n = 64, .options = kSoftcap},
    Config{.head_dim = 64, .block_m = 64, .block_n = 64, .options = kMasks}};
constexpr std::array kTensorCore{
    Config{.head_dim = 32, .block_m = 64, .block_n = 64},
    Config{.head_dim = 64, .block_m = 64, .block_n = 64},
    Config{.head_dim = 64, .block_m = 128, .block_n = 64},
    Config{.head_dim = 96, .block_m = 64, .block_n = 64},
    Config{.head_dim = 128, .block_m = 64, .block_n = 64},
    Config{.head_dim = 192, .block_m = 64, .block_n = 32},
    Config{.head_dim = 192, .block_m = 64, .block_n = 32, .value_dim = 128},
    Config{.head_dim = 32, .block_m = 64, .block_n = 64, .value_dim = 64},
    Config{.head_dim = 256, .block_m = 64, .block_n = 32}};

constexpr std::array kSplit{Config{.head_dim = 64, .value_dim = 64},
                            Config{.head_dim = 64, .options = kSoftcap, .value_dim = 64},
                            Config{.head_dim = 128, .value_dim = 128},
                            Config{.head_dim = 192, .value_dim = 128},
                            Config{.head_dim = 512, .value_dim = 256}};

}  // namespace

simt::OperatorInstances instances() {
  simt::OperatorInstances all = hopper_instances();
  all.push_back({"split_kv", simt::list<SplitKv, kSplit>(Halves{})});
  all.push_back({"combine", simt::list<Combine, simt::kDefaultConfig<CombineConfig>>(Halves{})});
  all.push_back({"naive", simt::concat(simt::list<Naive, kNaive>(simt::Floats{}),
                                       simt::list<Naive, kNaiveOfFloat8>(Float8{}))});
  all.push_back({"tiled", simt::concat(simt::list<Tiled, kTiled>(simt::Floats{}),
                                       simt::list<Tiled, kTiledOptions>(simt::Floats{}))});
  all.push_back({"tensor_core", simt::concat(simt::list<TensorCore, kTensorCore>(Halves{}),
                                             simt::list<TensorCore, kCoreOptions>(Halves{}))});
  return all;
}

}  // namespace tensorcraft::kernel::attention
