// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/sample/problem.hpp"

#include "tensorcraft/ops/sample/00_naive.cuh"
#include "tensorcraft/ops/sample/01_block.cuh"
#include "tensorcraft/ops/sample/02_split.cuh"
#include "tensorcraft/ops/sample/pick.cuh"

namespace tensorcraft::kernel::sample {
namespace {

constexpr std::array kNaive{Config{.threads = 128, .nested = 1}};
constexpr Config block_config(int threads, int vector, int filters) {
  return {.threads = threads, .vector = vector, .filters = filters, .nested = 1};
}
constexpr std::array kBlockAlone{block_config(32, 4, 0)};
// What filters serves rows without filters too.
constexpr std::array kBlockFloats{block_config(32, 4, 1), block_config(32, 1, 1),
                                  block_config(256, 4, 1), block_config(512, 4, 1),
                                  block_config(512, 1, 1)};
constexpr std::array kBlockHalves{block_config(32, 8, 1), block_config(256, 8, 1),
                                  block_config(512, 8, 1)};
constexpr std::array kSplitAlone{block_config(128, 4, 0)};
constexpr std::array kSplitFloats{block_config(128, 4, 1), block_config(128, 1, 1)};
constexpr std::array kSplitHalves{block_config(128, 8, 1)};
constexpr std::array kPickFloats{block_config(32, 4, 0), block_config(32, 1, 0),
                                 block_config(512, 4, 1), block_config(512, 1, 1)};
constexpr std::array kPickHalves{block_config(32, 8, 0), block_config(512, 8, 1)};

}  // namespace

simt::OperatorInstances instances() {
  using simt::list, simt::concat, simt::Float, simt::Bf16;
  constexpr auto nested = &Config::nested, filters = &Config::filters;
  return {{"naive", list<Naive, kNaive>(simt::Floats{}, nested)},
          {"block", concat(list<Block, kBlockAlone>(Float{}, nested),
                           list<Block, kBlockFloats>(Float{}, nested, filters),
                           list<Block, kBlockHalves>(Bf16{}, nested, filters))},
          {"split", concat(list<Split, kSplitAlone>(Float{}, nested),
                           list<Split, kSplitFloats>(Float{}, nested, filters),
                           list<Split, kSplitHalves>(Bf16{}, nested, filters))},
          {"pick", concat(list<Pick, kPickFloats>(Float{}, nested),
                          list<Pick, kPickHalves>(Bf16{}, nested))}};
}

}  // namespace tensorcraft::kernel::sample
