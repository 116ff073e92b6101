// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/depthwise_separable_conv2d/problem.hpp"

#include "tensorcraft/ops/depthwise_separable_conv2d/00_naive.cuh"
#include "tensorcraft/ops/depthwise_separable_conv2d/01_fused.cuh"
#include "tensorcraft/ops/depthwise_separable_conv2d/plan.h"

namespace tensorcraft::kernel::depthwise_separable_conv2d {
namespace {

using enum ConvActivation;

// Every tile, windows of any size and of those that are known, and results stored one by one.
constexpr std::array kFused{fused_config(kTiles[0], 3, 1, 4, none, none),
                            fused_config(kTiles[0], 3, 1, 4, relu6, none),
                            fused_config(kTiles[0], 3, 1, 1, relu6, none),
                            fused_config(kTiles[0], 3, 2, 4, relu6, none),
                            fused_config(kTiles[0], 5, 1, 4, relu6, none),
                            fused_config(kTiles[0], 5, 2, 4, relu6, none),
                            fused_config(kTiles[0], 0, 0, 4, none, none),
                            fused_config(kTiles[0], 0, 0, 4, silu, none),
                            fused_config(kTiles[1], 3, 1, 4, relu6, relu6),
                            fused_config(kTiles[2], 3, 1, 4, relu6, relu6),
                            fused_config(kTiles[3], 3, 1, 4, relu6, relu6),
                            fused_config(kTiles[2], 5, 1, 4, gelu, hard_swish)};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(simt::Floats{})},
          {"fused", simt::list<Fused, kFused>(simt::Halves{})}};
}

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d
