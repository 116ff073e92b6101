// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/hopper_plan.h"
#include "tensorcraft/ops/attention/problem.hpp"

#include "tensorcraft/ops/attention/03_wgmma.cuh"
#include "tensorcraft/ops/attention/04_warp_specialized.cuh"
#include "tensorcraft/ops/attention/05_persistent.cuh"
#include "tensorcraft/ops/attention/value_tiles.cuh"

// What the SIMT device has of the rungs on wgmma: one, two and three consumers.
namespace tensorcraft::kernel::attention {
namespace {

using simt::Bf16, simt::Halves, simt::concat, simt::list;

constexpr Config config(int head_dim, int m, int n, int producers, bool has_out_tile,
                        int options = 0) {
  for (const HopperTile& t : kHopperTiles)
    if (t.head_dim == head_dim && t.m == m && t.n == n) {
      Config c = hopper_config(t, producers, has_out_tile);
      c.options = options;
      return c;
    }
  throw "no such tile";
}
using Float8 = simt::AnyOf<simt::Types<e4m3>>;
constexpr Config float8_config(int head_dim, int m, int producers, bool persists, OutputType out,
                               int options = 0) {
  for (const HopperTile& t : kFloat8Tiles)
    if (t.head_dim == head_dim && t.m == m) {
      Config c = hopper_config(t, producers, persists, out);
      c.options = options;
      return c;
    }
  throw "no such tile";
}
constexpr OutputType kBf16 = OutputType::bfloat16;
constexpr std::array kFloat8Persistent{float8_config(64, 64, 1, true, kBf16),
                                       float8_config(64, 128, 1, true, kBf16),
                                       float8_config(64, 64, 1, true, kBf16, kRanges),
                                       float8_config(128, 64, 1, true, kBf16),
                                       float8_config(128, 128, 1, true, kBf16),
                                       float8_config(256, 64, 1, true, kBf16),
                                       float8_config(256, 128, 1, true, kBf16),
                                       float8_config(64, 64, 1, true, OutputType::float16)};
constexpr std::array kFloat8Specialized{float8_config(64, 64, 1, false, kBf16),
                                        float8_config(128, 128, 1, false, kBf16),
                                        float8_config(256, 64, 1, false, kBf16)};
constexpr std::array kFloat8Wgmma{float8_config(64, 64, 0, false, kBf16),
                                  float8_config(128, 128, 0, false, kBf16),
                                  float8_config(256, 64, 0, false, kBf16)};
constexpr std::array kTransposed{TransposeConfig{.head_dim = 64, .block_n = 128},
                                 TransposeConfig{.head_dim = 128, .block_n = 128},
                                 TransposeConfig{.head_dim = 256, .block_n = 64}};

// Few queries in both dtypes, many in one.
constexpr std::array kWgmmaFew{config(32, 64, 128, 0, false), config(64, 64, 128, 0, false),
                               config(64, 64, 128, 0, false, kRanges),
                               config(64, 64, 128, 0, false, kSoftcap),
                               config(64, 64, 128, 0, false, kMasks)};
constexpr std::array kWgmma{config(192, 64, 128, 0, false), config(128, 128, 128, 0, false)};
constexpr std::array kSpecializedFew{config(32, 64, 128, 1, false), config(64, 64, 128, 1, false),
                                     config(64, 64, 128, 1, false, kRanges),
                                     config(64, 64, 128, 1, false, kSoftcap),
                                     config(64, 64, 128, 1, false, kMasks)};
constexpr std::array kSpecialized{config(192, 64, 128, 1, false), config(64, 192, 128, 1, false),
                                  config(128, 128, 128, 1, false)};
constexpr std::array kPersistentFew{config(32, 64, 128, 1, true), config(64, 64, 128, 1, true),
                                    config(64, 64, 128, 1, true, kRanges),
                                    config(64, 64, 128, 1, true, kSoftcap),
                                    config(64, 64, 128, 1, true, kMasks)};
constexpr std::array kPersistent{
    config(64, 128, 128, 1, true),          config(64, 192, 128, 1, true),
    config(96, 64, 128, 1, true),           config(64, 128, 128, 1, true, kRanges),
    config(64, 192, 128, 1, true, kRanges), config(64, 128, 128, 1, true, kMasks),
    config(128, 128, 128, 1, true),         config(192, 64, 128, 1, true),
    config(192, 128, 128, 1, true),         config(256, 128, 80, 1, true)};

}  // namespace

simt::OperatorInstances hopper_instances() {
  return {{"persistent",
           concat(list<Persistent, kPersistentFew>(Halves{}), list<Persistent, kPersistent>(Bf16{}),
                  list<Persistent, kFloat8Persistent>(Float8{}))},
          {"warp_specialized", concat(list<WarpSpecialized, kSpecializedFew>(Halves{}),
                                      list<WarpSpecialized, kSpecialized>(Bf16{}),
                                      list<WarpSpecialized, kFloat8Specialized>(Float8{}))},
          {"wgmma", concat(list<Wgmma, kWgmmaFew>(Halves{}), list<Wgmma, kWgmma>(Bf16{}),
                           list<Wgmma, kFloat8Wgmma>(Float8{}))},
          {"transpose_values", list<TransposeValues, kTransposed>(Float8{})}};
}

}  // namespace tensorcraft::kernel::attention
