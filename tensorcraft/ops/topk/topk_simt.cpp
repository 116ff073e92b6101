// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/topk/topk_simt.hpp"

#include "tensorcraft/ops/topk/00_naive.cuh"
#include "tensorcraft/ops/topk/01_block.cuh"
#include "tensorcraft/ops/topk/02_warp.cuh"

namespace tensorcraft::kernel::topk {
namespace {

using Some = simt::AnyOf<simt::Types<float>, simt::Types<bf16>>;

constexpr std::array kNaive{Config{.threads = 128, .nested = 1}};
constexpr std::array kBlock{Config{.threads = 256, .nested = 1}};
constexpr std::array kWarp{Config{.threads = 128, .slots = 1, .nested = 1},
                           Config{.threads = 128, .slots = 2, .nested = 1},
                           Config{.threads = 128, .slots = 16, .nested = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); }, &Config::nested);
}

simt::InstanceList block_instances() {
  return simt::instances<Params, kBlock>(
      Some{}, []<class T, Config C>(const Params& p) { block<T, C>(p); }, &Config::nested);
}

simt::InstanceList warp_instances() {
  return simt::instances<Params, kWarp>(
      Some{}, []<class T, Config C>(const Params& p) { warp<T, C>(p); }, &Config::nested);
}

}  // namespace tensorcraft::kernel::topk
