// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a tile hold all of it in registers, so it is read once and written
// once. Every load of a thread is issued before the first is used: threads * slots * 16 bytes a
// block are in flight. A tile of 128 elements belongs to 4 threads (16-bit) or 8, whose 32 or 16
// elements each pay for finding the tile and its scale; no barrier. Demands: unit strides, tiles of
// at most group * vector * slots elements.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/quantize/scale.cuh"

namespace tensorcraft::kernel::quantize {

// The tile of a group, and where the accesses of this thread lie in it.
template <Config C>
struct Slots {
  static constexpr int kTileSide = 128;
  static constexpr int kAcross = kTileSide / C.vector;  // accesses of a row of a square tile

  int64_t row_tile, col_tile, first_row, col;
  int rows, cols;  // of the tile; no rows: there is no such tile

  TC_DEVICE Slots(const Tiles& t, int64_t tile) {
    // There are fewer than 2^31 tiles, and 32 bits divide in a quarter of the time.
    const auto number = uint32_t(tile), col_tiles = uint32_t(t.col_tiles);
    const uint32_t quotient = number / col_tiles;
    row_tile = quotient;
    col_tile = number - quotient * col_tiles;
    first_row = t.first_row(row_tile);
    col = col_tile * t.tile_cols;
    rows = C.tile_rows == 1 ? 1 : int(t.last_row(row_tile) - first_row);
    if (row_tile >= t.row_tiles) rows = 0;
    cols = int(t.last_col(col_tile) - col);
  }
  TC_DEVICE static int lane() { return int(threadIdx.x % C.group); }
  TC_DEVICE static int row_of(int slot) {
    if constexpr (C.tile_rows == 1) return 0;
    return lane() / kAcross + slot * (C.group / kAcross);
  }
  TC_DEVICE static int col_of(int slot) {
    if constexpr (C.tile_rows == 1) return (lane() + slot * C.group) * C.vector;
    return lane() % kAcross * C.vector;
  }
  TC_DEVICE bool has(int slot) const { return col_of(slot) < cols && row_of(slot) < rows; }
  template <class T>
  TC_DEVICE T* at(T* data, const RowMap& map, int slot) const {
    return data + map.offset<C.nested>(first_row + row_of(slot)) + col + col_of(slot);
  }
};

// The scale of a whole tensor from what the blocks of the first launch found. Each block adds them
// up for itself, in one order; block 0 leaves the result.
template <class Q, Config C>
TC_DEVICE Scale combine(const Params& p, BlockReduce<float>& scratch) {
  Range range;
#pragma unroll 1
  for (int64_t i = threadIdx.x; i < p.parts; i += C.threads) {
    range.high = fmax_nan(range.high, p.partials[2 * i]);
    range.low = fmax_nan(range.low, p.partials[2 * i + 1]);
  }
  range.high = block_max(scratch, range.high);
  if (p.asymmetric) range.low = block_max(scratch, range.low);
  const Scale scale = scale_of<Q>(range, p.asymmetric != 0, p.power_of_two != 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) store_scale(p, scale, 0, 0);
  return scale;
}

// The scale of the tile that a group holds as `x`. All threads of the block call.
template <class T, class Q, Config C>
TC_DEVICE Scale find_scale(const Params& p, const Slots<C>& slots,
                           const AlignedVector<T, C.vector> (&x)[C.slots],
                           BlockReduce<float>& scratch) {
  if constexpr (C.given) {
    if (p.parts > 0) return combine<Q, C>(p, scratch);
    return given_scale(p, slots.rows ? p.tiles.scale_at(slots.row_tile, slots.col_tile) : 0);
  } else {
    Range range;
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      for (int e = 0; e < C.vector; ++e) widen(range, float(x[s][e]), C.asymmetric != 0);
    range.high = group_reduce<C.group>(scratch, range.high, Max());
    if constexpr (C.asymmetric) range.low = group_reduce<C.group>(scratch, range.low, Max());
    const Scale scale = scale_of<Q>(range, C.asymmetric != 0, p.power_of_two != 0);
    if (slots.rows && Slots<C>::lane() == 0) store_scale(p, scale, slots.row_tile, slots.col_tile);
    return scale;
  }
}

template <class T, class Q, Config C>
TC_DEVICE void in_registers(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  const Slots<C> slots(p.tiles,
                       int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group);
  AlignedVector<T, C.vector> x[C.slots];
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    x[s] = {};  // behind the end of a tile, which changes no range
    if (slots.has(s))
      x[s] = load_vector<C.vector>(slots.at(static_cast<const T*>(p.x), p.x_rows, s));
  }
  const Scale scale = find_scale<T, Q, C>(p, slots, x, scratch);
  const Divisor divisor(scale.scale);
#pragma unroll
  for (int s = 0; s < C.slots; ++s) {
    if (!slots.has(s)) continue;
    float values[C.vector];
    for (int e = 0; e < C.vector; ++e) values[e] = float(x[s][e]);
    store_vector(slots.at(static_cast<Q*>(p.out), p.out_rows, s),
                 quantized<C.vector, Q>(values, divisor, scale.zero_point));
  }
}

}  // namespace tensorcraft::kernel::quantize
