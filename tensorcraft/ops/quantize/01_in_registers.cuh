// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a tile hold all of it in registers, so it is read once and written
// once. Every load of a thread is issued before the first is used: threads * slots * 16 bytes a
// block are in flight. A tile of 128 elements belongs to 4 threads (16-bit) or 8, whose 32 or 16
// elements each pay for finding the tile and its scale; no barrier. Demands: unit strides, tiles of
// at most group * vector * slots elements.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/warp.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/quantize/scale.cuh"

namespace tensorcraft::kernel::quantize {

// The tile of a group, and the places of this thread's accesses in it.
template <Config C>
struct Slots {
  static constexpr int kTileSide = 128;
  static constexpr int kAcross = kTileSide / C.vector;  // accesses of a row of a square tile

  int64_t row_tile, col_tile, first_row, col;
  int rows, cols;  // of the tile; no rows: there is no such tile

  // There are fewer than 2^31 tiles.
  TC_DEVICE Slots(const Tiles& t, uint32_t tile) {
    row_tile = t.across.quotient(tile);
    col_tile = tile - uint32_t(row_tile) * t.across.divisor;
    first_row = C.tile_rows == 1 ? row_tile : t.first_row(row_tile);
    col = col_tile * t.tile_cols;
    rows = C.tile_rows == 1 ? 1 : int(t.last_row(row_tile) - first_row);
    cols = int(t.last_col(col_tile) - col);
    if (row_tile >= t.row_tiles) rows = cols = 0;
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
  TC_DEVICE bool has(int slot) const {
    return col_of(slot) < cols && (C.tile_rows == 1 || row_of(slot) < rows);
  }
  template <class T>
  TC_DEVICE T* at(T* data, const RowParams<Params, C>& p, int tensor, int slot) const {
    data += row_offset(p, tensor, first_row + row_of(slot)) + col + col_of(0);
    return data + (col_of(slot) - col_of(0));  // a constant: one address for all slots of a row
  }
};

// What the threads of a block that share a tile exchange: each serves one reduction.
struct Scratch {
  BlockReduce<float> high, low;
};

// The largest value of a group, each 0 or above or NaN: unsigned integers have the order of their
// bits, and one instruction finds a warp's largest integer.
template <Config C>
TC_DEVICE float largest_of_group(BlockReduce<float>& shared, float v) {
  if constexpr (C.group < kWarpSize) {
    return warp_reduce<C.group>(v, Max());
  } else {
    const auto of_warp = [](float x) {
      return bit_cast<float>(ptx::redux_sync_max_u32(bit_cast<uint32_t>(x)));
    };
    v = of_warp(v);
    if constexpr (C.group == kWarpSize) return v;
    const int lane = int(threadIdx.x % kWarpSize);
    if (lane == 0) shared.parts[threadIdx.x / kWarpSize] = v;
    __syncthreads();
    return of_warp(lane < C.group / kWarpSize ? shared.parts[lane] : 0.0f);
  }
}

// The scale of a whole tensor from what the blocks of the first launch found. Each block adds them
// up for itself, in one order; block 0 leaves the result.
template <class Q, Config C>
TC_DEVICE Scale combine(const Params& p, Scratch& scratch) {
  Range range;
#pragma unroll 1
  for (int64_t i = threadIdx.x; i < p.parts; i += C.threads) {
    range.high = fmax_nan(range.high, p.partials[2 * i]);
    range.low = fmax_nan(range.low, p.partials[2 * i + 1]);
  }
  range.high = block_reduce_once(scratch.high, range.high, Max());
  if (p.asymmetric) range.low = block_reduce_once(scratch.low, range.low, Max());
  const Scale scale = scale_of<Q>(range, p.asymmetric != 0, p.power_of_two != 0);
  if (blockIdx.x == 0) store_scale(p, scale, 0, 0, int(threadIdx.x), p.asymmetric != 0);
  return scale;
}

// The scale of the tile that a group holds as `x`. All threads of the block call.
template <class T, class Q, Config C>
TC_DEVICE Scale find_scale(const Params& p, const Slots<C>& slots,
                           const Packed<T, C.vector> (&x)[C.slots], Scratch& scratch) {
  if constexpr (C.given) {
    if (p.parts > 0) return combine<Q, C>(p, scratch);
    return given_scale(p, slots.rows ? p.tiles.scale_at(slots.row_tile, slots.col_tile) : 0);
  } else {
    PackedRange<T, C.vector> found;
#pragma unroll
    for (int s = 0; s < C.slots; ++s) found.widen(x[s], C.asymmetric != 0);
    Range range = found.result();
    range.high = largest_of_group<C>(scratch.high, range.high);
    if constexpr (C.asymmetric) range.low = largest_of_group<C>(scratch.low, range.low);
    const Scale scale = scale_of<Q>(range, C.asymmetric != 0, p.power_of_two != 0);
    if (slots.rows)
      store_scale(p, scale, slots.row_tile, slots.col_tile, Slots<C>::lane(), C.asymmetric != 0);
    return scale;
  }
}

struct InRegisters {
  template <class T, class Q, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<Scratch>();
    const Slots<C> slots(p.tiles, blockIdx.x * (C.threads / C.group) + threadIdx.x / C.group);
    Packed<T, C.vector> x[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      x[s] = {};  // behind the end of a tile, which changes no range
      if (slots.has(s))
        x[s] = Packed<T, C.vector>::load(slots.at(static_cast<const T*>(p.x), p, Params::kX, s));
    }
    const Scale scale = find_scale<T, Q, C>(p, slots, x, scratch);
    // An int8 of a NaN is 0, and a zero point moves its last code: such values are prepared.
    const Coder<T, Q, !C.given && !kIsIntegerCode<Q>> coder(scale);
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      if (!slots.has(s)) break;  // no later one either
      float values[C.vector];
      to_floats(values, x[s]);
      store_vector(slots.at(static_cast<Q*>(p.out), p, Params::kOut, s), coder.codes(values));
    }
  }
};

}  // namespace tensorcraft::kernel::quantize
