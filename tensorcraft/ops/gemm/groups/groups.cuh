// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/scan.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/ops/gemm/params.h"

// The tiles of a product whose batch entries are groups of rows, or along k, as an array on the
// device says. Each warp finds its tile by itself, of groups of rows 32 at a time.
namespace tensorcraft::kernel::gemm {

// A tile of a group: only rows of D before `row_end` are the group's. 0: there is no tile.
struct GroupTile : BlockTile {
  int64_t row_end;
  TC_DEVICE bool is_none() const { return row_end == 0; }
};

// min(x, most), where x may be negative.
TC_DEVICE int32_t clamped(int64_t x, int32_t most) {
  return x < 0 ? 0 : x < most ? int32_t(x) : most;
}

TC_DEVICE int64_t element_of(const Groups& g, int64_t at) {
  return g.is_wide ? static_cast<const int64_t*>(g.array)[at]
                   : static_cast<const int32_t*>(g.array)[at];
}

// Tiles of kTileM x kTileN; kSwap: of the transposed product, whose columns are the rows of groups.
template <int kTileM, int kTileN, bool kSwap = false>
struct GroupedTiles {
  const GroupedParams& p;
  int32_t first_group = 0;  // of the 32 that were searched last, a lane each
  int32_t rows_before = 0;  // of the groups before them, if the array has sizes
  uint32_t tiles_before = 0;

  TC_DEVICE explicit GroupedTiles(const GroupedParams& params) : p(params) {}

  // Tile `number` of all groups in their order, by all lanes of a warp. No later call may ask for
  // an earlier tile.
  TC_DEVICE GroupTile find(uint32_t number) {
    const int lane = int(threadIdx.x) % kWarpSize;
    for (; first_group < p.groups.count; first_group += kWarpSize) {
      const Rows own = rows_of_group(first_group + lane);
      const uint32_t up_to = warp_scan(order(own.count).rows * order(own.count).cols);
      const uint32_t hits = __ballot_sync(kFullWarp, number - tiles_before < up_to);
      if (hits != 0) return tile(number - tiles_before, own, up_to, lowest_bit(hits));
      tiles_before += __shfl_sync(kFullWarp, up_to, kWarpSize - 1);
      rows_before = __shfl_sync(kFullWarp, own.first + own.count, kWarpSize - 1);
    }
    return {{0, 0, 0}, 0};
  }

 private:
  struct Rows {
    int32_t first, count;
  };
  using Order = TileOrder<kTileM, kTileN>;
  TC_DEVICE Order order(int32_t rows) const { return kSwap ? Order(p.n, rows) : Order(rows, p.n); }
  // Values that no array of groups has make no address outside the matrices.
  TC_DEVICE Rows rows_of_group(int32_t group) const {
    const Groups& g = p.groups;
    const bool is_there = group < g.count;
    const int32_t most = int32_t(p.m);
    const int64_t at = is_there ? group * g.step : 0;
    const int32_t value = is_there ? clamped(element_of(g, at), most) : 0;
    if (g.form == GroupForm::counts) return {0, value};
    if (g.form == GroupForm::ranges) {
      const int32_t end = is_there ? clamped(element_of(g, at + g.end_at), most) : 0;
      return {value, end > value ? end - value : 0};
    }
    // Sums that stop at `most`, which no sum of two exceeds twice.
    uint32_t end = uint32_t(value) + uint32_t(lane_is_first() ? rows_before : 0);
    for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
      const uint32_t below = __shfl_up_sync(kFullWarp, end, unsigned(lanes));
      if (int(threadIdx.x) % kWarpSize >= lanes) end += below;
      if (end > uint32_t(most)) end = uint32_t(most);
    }
    const uint32_t before = __shfl_up_sync(kFullWarp, end, 1);
    const int32_t first = lane_is_first() ? rows_before : int32_t(before);
    return {first, int32_t(end) - first};
  }
  TC_DEVICE static bool lane_is_first() { return threadIdx.x % kWarpSize == 0; }

  // Tile `index` of these 32 groups, which is one of the group that `lane` has.
  TC_DEVICE GroupTile tile(uint32_t index, const Rows& own, uint32_t up_to, int lane) const {
    const Rows rows{__shfl_sync(kFullWarp, own.first, lane),
                    __shfl_sync(kFullWarp, own.count, lane)};
    const uint32_t end = __shfl_sync(kFullWarp, up_to, lane);
    const Order in_group = order(rows.count);
    const BlockTile at = in_group.at(index - (end - in_group.rows * in_group.cols));
    GroupTile found{at, int64_t(rows.first) + rows.count};
    (kSwap ? found.col : found.row) += rows.first;
    found.batch = uint32_t(first_group + lane);
    return found;
  }
};

// A tile of a group along k, which has all rows and columns and its own part of k.
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
