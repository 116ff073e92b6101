// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/transfer_hicache/problem.hpp"

#include "tensorcraft/ops/transfer_hicache/00_naive.cuh"
#include "tensorcraft/ops/transfer_hicache/01_vectorized.cuh"
#include "tensorcraft/ops/transfer_hicache/copy.cuh"

namespace tensorcraft::kernel::transfer_hicache {
namespace {

using Words = simt::AnyOf<simt::Types<int32_t>>;
using Long = simt::AnyOf<simt::Types<int64_t>>;
constexpr std::array kNaive{Config{.threads = 256}};
constexpr std::array kWords{Config{.lanes = 8, .package = 4}, Config{.lanes = 16, .package = 4}};
constexpr std::array kLong{
    Config{.lanes = 8, .package = 16},  Config{.lanes = 8, .package = 8},
    Config{.lanes = 16, .package = 16}, Config{.lanes = 32, .package = 16},
    Config{.lanes = 32, .package = 8},
};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kNaive>(simt::Bits{})},
          {"vectorized", simt::concat(simt::list<Vectorized, kLong>(Long{}),
                                      simt::list<Vectorized, kWords>(Words{}))},
          {"copy", simt::list<Copy, simt::kDefaultConfig<CopyConfig>>(simt::Bits{})}};
}

}  // namespace tensorcraft::kernel::transfer_hicache
