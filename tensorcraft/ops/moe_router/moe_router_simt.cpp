// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/moe_router/problem.hpp"

#include "tensorcraft/ops/moe_router/00_naive.cuh"
#include "tensorcraft/ops/moe_router/01_warp.cuh"

namespace tensorcraft::kernel::moe_router {
namespace {

using Some = simt::AnyOf<simt::Types<float>, simt::Types<bf16>>;

constexpr std::array kWarp{Config{.slots = 1}, Config{.slots = 2}, Config{.slots = 8},
                           Config{.slots = 16}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(simt::Floats{})},
          {"warp", simt::list<Warp, kWarp>(Some{})}};
}

}  // namespace tensorcraft::kernel::moe_router
