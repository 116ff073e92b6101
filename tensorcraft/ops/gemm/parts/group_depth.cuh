// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/gemm/groups/groups.cuh"

// Products whose batch entries are groups along k: every one has all rows and columns, and its own
// part of k, as an array on the device says.
namespace tensorcraft::kernel::gemm {

// A tile of a group along k.
struct DepthTile : GroupTile {
  int64_t k_begin, k_end;
};

// The part of k of the tile's group, by all lanes of a warp. Values that no array of groups has
// make no address outside the matrices.
TC_DEVICE DepthTile depth_tile(const GroupedParams& p, const BlockTile& at) {
  const Groups& g = p.groups;
  const int32_t most = int32_t(p.k);
  const auto value = [&](int64_t i) { return clamped(element_of(g, i), most); };
  const int64_t own = at.batch * g.step;
  int64_t begin = 0, end = 0;
  if (g.form == GroupForm::ranges) {
    begin = value(own);
    end = value(own + g.end_at);
  } else {
    for (uint32_t i = threadIdx.x % kWarpSize; i < at.batch; i += kWarpSize)
      begin += value(i * g.step);
    for (int lanes = 1; lanes < kWarpSize; lanes *= 2)
      begin += __shfl_xor_sync(kFullWarp, begin, lanes);
    begin = begin < most ? begin : most;
    end = begin + value(own);
    end = end < most ? end : most;
  }
  return {{at, p.m}, begin, end > begin ? end : begin};
}

}  // namespace tensorcraft::kernel::gemm
