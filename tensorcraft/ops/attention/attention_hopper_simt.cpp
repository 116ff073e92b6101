// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/attention/hopper_plan.h"
#include "tensorcraft/ops/attention/problem.hpp"

#include "tensorcraft/ops/attention/03_wgmma.cuh"
#include "tensorcraft/ops/attention/04_warp_specialized.cuh"
#include "tensorcraft/ops/attention/05_persistent.cuh"

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
  return {{"persistent", concat(list<Persistent, kPersistentFew>(Halves{}),
                                list<Persistent, kPersistent>(Bf16{}))},
          {"warp_specialized", concat(list<WarpSpecialized, kSpecializedFew>(Halves{}),
                                      list<WarpSpecialized, kSpecialized>(Bf16{}))},
          {"wgmma", concat(list<Wgmma, kWgmmaFew>(Halves{}), list<Wgmma, kWgmma>(Bf16{}))}};
}

}  // namespace tensorcraft::kernel::attention
