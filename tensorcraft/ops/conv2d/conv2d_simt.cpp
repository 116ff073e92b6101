// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/conv2d/problem.hpp"

#include "tensorcraft/ops/conv2d/00_naive.cuh"
#include "tensorcraft/ops/conv2d/01_tiled.cuh"
#include "tensorcraft/ops/conv2d/02_depthwise.cuh"
#include "tensorcraft/ops/conv2d/03_implicit_gemm.cuh"
#include "tensorcraft/ops/conv2d/04_im2col.cuh"
#include "tensorcraft/ops/conv2d/05_direct.cuh"
#include "tensorcraft/ops/conv2d/06_winograd.cuh"
#include "tensorcraft/ops/conv2d/07_implicit_wgmma.cuh"
#include "tensorcraft/ops/conv2d/08_sliding.cuh"
#include "tensorcraft/ops/conv2d/09_direct_wgmma.cuh"
#include "tensorcraft/ops/conv2d/plan.h"

namespace tensorcraft::kernel::conv2d {
namespace {

using simt::concat, simt::list;

using enum ConvActivation;
constexpr ConvActivation kActivations[] = {none, relu, relu6, gelu, silu, hard_swish};

// A Config with each activation, or with the first of them.
template <size_t kCount = 6>
constexpr std::array<Config, kCount> each(Config config) {
  std::array<Config, kCount> all;
  for (size_t i = 0; i < kCount; ++i) {
    all[i] = config;
    all[i].activation = kActivations[i];
  }
  return all;
}
constexpr std::array kNaive = each({});
constexpr std::array kFewNaive = each<3>({});
constexpr std::array kTiledPlanes = each<2>(tiled_config(false, none));
constexpr std::array kTiledPlane{tiled_config(false, none)};
constexpr std::array kTiledChannels = each(tiled_config(true, none));
constexpr std::array kFewTiledChannels = each<3>(tiled_config(true, none));

constexpr Config window(int vector, int taps, int stride, ConvActivation activation) {
  return {.activation = activation,
          .vector = vector,
          .taps = taps,
          .stride = stride,
          .outputs = kOutputs};
}
// Windows of any size, and of those that are known.
constexpr std::array<Config, 3> plain_windows(int vector) {
  return {window(vector, 0, 0, none), window(vector, 0, 0, silu), window(vector, 3, 1, none)};
}
constexpr std::array<Config, 4> model_windows(int vector) {
  return {window(vector, 3, 1, relu6), window(vector, 3, 2, relu6), window(vector, 5, 1, relu6),
          window(vector, 5, 2, relu6)};
}
constexpr std::array kPlainFloats = plain_windows(4), kPlainHalves = plain_windows(8);
constexpr std::array kModelFloats = model_windows(4), kModelHalves = model_windows(8);

constexpr std::array kSlidings{sliding_config(3, 1, none), sliding_config(3, 1, relu6),
                               sliding_config(3, 2, relu6), sliding_config(5, 1, relu6),
                               sliding_config(5, 2, relu6)};

constexpr std::array kGemms = each(gemm_config(kTiles[2], 4, none));
constexpr std::array kFewGemms = each<3>(gemm_config(kTiles[2], 4, none));
constexpr std::array kGemmTiles{gemm_config(kTiles[0], 4, none), gemm_config(kTiles[1], 4, none),
                                gemm_config(kTiles[1], 1, none), gemm_config(kTiles[2], 1, none)};
constexpr std::array kTf32Gemms{
    gemm_config(kTf32Tiles[0], 4, none, 4), gemm_config(kTf32Tiles[1], 4, none, 4),
    gemm_config(kTf32Tiles[2], 4, none, 4), gemm_config(kTf32Tiles[2], 4, relu, 4),
    gemm_config(kTf32Tiles[2], 1, none, 4)};
constexpr const WgmmaTile& wgmma_tile(int m, int n) {
  for (const WgmmaTile& t : kWgmmaTiles)
    if (t.m == m && t.n == n) return t;
  return kWgmmaTiles[0];
}
constexpr std::array kWgmmas = each(wgmma_config(wgmma_tile(64, 64), none));
constexpr std::array kFewWgmmas = each<3>(wgmma_config(wgmma_tile(64, 64), none));
constexpr std::array kTf32Wgmmas{wgmma_config(wgmma_tile(64, 64), none, 4),
                                 wgmma_config(wgmma_tile(64, 64), relu, 4)};
constexpr std::array kDirects{direct_config(8, none), direct_config(8, relu6),
                              direct_config(1, relu6)};

constexpr std::array kDirectWgmmas{direct_wgmma_config(3, relu6), direct_wgmma_config(7, relu6)};

constexpr std::array kWinograds{winograd_config(false, 3, none), winograd_config(true, 3, none),
                                winograd_config(true, 3, relu), winograd_config(false, 5, none),
                                winograd_config(true, 5, relu6)};

using Moved = simt::AnyOf<simt::Types<int16_t>, simt::Types<int32_t>>;

}  // namespace

simt::OperatorInstances instances() {
  using Half = simt::AnyOf<simt::Types<f16>>;
  using Brain = simt::AnyOf<simt::Types<bf16>>;
  using Wide = simt::AnyOf<simt::Types<float>, simt::Types<bf16>>;
  return {{"naive", concat(list<Naive, kNaive>(Wide{}), list<Naive, kFewNaive>(Half{}))},
          {"tiled",
           concat(list<Tiled, kTiledPlanes>(Wide{}), list<Tiled, kTiledPlane>(Half{}),
                  list<Tiled, kTiledChannels>(Wide{}), list<Tiled, kFewTiledChannels>(Half{}))},
          {"depthwise", concat(list<Depthwise, kPlainFloats>(simt::Float{}),
                               list<Depthwise, kModelFloats>(simt::Float{}),
                               list<Depthwise, kPlainHalves>(Brain{}),
                               list<Depthwise, kModelHalves>(simt::Halves{}))},
          {"sliding", concat(list<Sliding, kSlidings>(simt::Float{}),
                             list<Sliding, kSlidings>(simt::Halves{}))},
          {"implicit_gemm",
           concat(list<ImplicitGemm, kGemms>(Brain{}), list<ImplicitGemm, kFewGemms>(Half{}),
                  list<ImplicitGemm, kGemmTiles>(simt::Halves{}),
                  list<ImplicitGemm, kTf32Gemms>(simt::Float{}))},
          {"implicit_wgmma",
           concat(list<ImplicitWgmma, kWgmmas>(Brain{}), list<ImplicitWgmma, kFewWgmmas>(Half{}),
                  list<ImplicitWgmma, kTf32Wgmmas>(simt::Float{}))},
          {"direct", list<Direct, kDirects>(simt::Halves{})},
          {"direct_wgmma", list<DirectWgmma, kDirectWgmmas>(simt::Halves{})},
          {"winograd", list<Winograd, kWinograds>(simt::Floats{})},
          {"im2col", list<Im2col, simt::kDefaultConfig<Im2colConfig>>(Moved{})}};
}

}  // namespace tensorcraft::kernel::conv2d
