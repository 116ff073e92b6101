// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/topk/problem.hpp"

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

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kNaive>(simt::Floats{}, &Config::nested)},
          {"block", simt::list<Block, kBlock>(Some{}, &Config::nested)},
          {"warp", simt::list<Warp, kWarp>(Some{}, &Config::nested)}};
}

}  // namespace tensorcraft::kernel::topk
