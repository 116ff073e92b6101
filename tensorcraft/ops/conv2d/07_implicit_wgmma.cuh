// SPDX-License-Identifier: Apache-2.0
#pragma once
// implicit_gemm whose windows the copy engine gathers, and whose product is wgmma.
//
// A tensor map of im2col mode knows images, padding and strides: one copy brings 64 channels of one
// tap of 128 neighbouring windows, through rows and images, and fills in zeros. One thread issues
// two copies a step where 128 had an address and two comparisons for each 16 bytes. What follows is
// gemm's persistent: a warpgroup fills a ring of stages, the others multiply from shared memory,
// and blocks take tile after tile. A step of 128 x 256 outputs reads 128 + 256 lines, where
//   128 x 128 of implicit_gemm reads 256 for half as many: a quarter less.
// It demands sm_90, one group, 16 bits or float32 that the engine may round to tf32, channels and
// filters in units of 16 bytes, strides up to 8, padding and windows within 128 places, and a
// result that is a matrix of places by filters.
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/stmatrix.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/consumers.cuh"
#include "tensorcraft/device/tile/operand_tiles.cuh"
#include "tensorcraft/device/tile/pipeline.cuh"
#include "tensorcraft/device/tile/stage_cursor.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// 64 places by some filters of the result, as the copy engine takes them.
template <class T, Config C>
inline constexpr int kSlotLine = result_slot_columns(C, sizeof(T)) * int(sizeof(T));
template <class T, Config C>
using ResultSlot = StoreSlot<kSlotLine<T, C>, kGroupRows * kSlotLine<T, C>>;

template <class T, Config C>
struct alignas(1024) WindowRing {
  using Stage = OperandTiles<
      BoxedTile, T,
      StepShape{
          .m = C.block_m, .n = C.block_n, .k = C.block_k, .a_along_k = true, .b_along_k = true}>;
  Stage stages[C.stages];
  ResultSlot<T, C> slots[C.consumers][kResultSlots];
  float bias[C.consumers][C.block_n];  // of the filters of a consumer's tile
  Barriers<C.stages> barriers;

  TC_DEVICE void start(const MappedParams& p) {
    begin_with_barriers([&] {
      ptx::prefetch_tensormap(&p.x_map);
      ptx::prefetch_tensormap(&p.w_map);
      barriers.init(C.consumers * kWarpgroup / 32);
    });
    __syncthreads();
  }
};

// Fills the ring, by one thread of the block.
template <class T, Config C>
struct WindowProducer {
  WindowRing<T, C>& ring;
  const MappedParams& p;
  StageCursor<C.stages> fill{0, 1};

  // All steps of a tile: taps, and the channels of each.
  TC_DEVICE void produce(const BlockTile& tile) {
    const Place at = place_of_row(p, uint32_t(tile.row));
    const int32_t window[3] = {int32_t(p.columns.first(at.column)), int32_t(p.rows.first(at.row)),
                               int32_t(at.sample)};
    int tap = 0;
    for (int r = 0; r < int(p.rows.taps); ++r)
      for (int s = 0; s < int(p.columns.taps); ++s, ++tap) {
        const uint16_t offsets[2] = {uint16_t(s * int(p.columns.dilation)),
                                     uint16_t(r * int(p.rows.dilation))};
#pragma unroll 1
        for (int channel = 0; channel < int(p.channels); channel += C.block_k)
          produce(window, offsets, channel, tap, int(tile.col));
      }
  }

 private:
  TC_DEVICE void produce(const int32_t (&window)[3], const uint16_t (&offsets)[2], int channel,
                         int tap, int filter) {
    ptx::mbarrier_wait_parity(&ring.barriers.empty[fill.stage], fill.parity);
    auto& stage = ring.stages[fill.stage];
    uint64_t* const full = &ring.barriers.full[fill.stage];
    ptx::mbarrier_arrive_expect_tx(full, sizeof(stage));
    const int32_t from[4] = {channel, window[0], window[1], window[2]};
    ptx::tma_load_im2col(stage.a.at, &p.x_map, from, offsets, full);
    const int32_t weights[3] = {channel, filter, tap};
    ptx::tma_load(stage.b.at, &p.w_map, weights, full);
    fill.advance();
  }
};

// A warpgroup that multiplies: its 64 rows of each tile.
template <class T, Config C>
struct WindowConsumer {
  static constexpr int slot_cols = result_slot_columns(C, sizeof(T));
  using Pair = Packed<T, 2>;

  WindowRing<T, C>& ring;
  const MappedParams& p;
  int group;  // number among the consumers
  int stores = 0;
  StageCursor<C.stages> read;
  WarpgroupSums<kGroupRows, C.block_n> sums;

  TC_DEVICE WindowConsumer(WindowRing<T, C>& memory, const MappedParams& params, int number)
      : ring(memory), p(params), group(number) {}

  // Multiplies the steps of a tile; a product is under way while the next one begins.
  TC_DEVICE void consume(int steps) {
    step(true);
#pragma unroll 1
    for (int i = 1; i < steps; ++i) step(false);
    sums.land();
    release(last_stage());
  }

  // Brings the sums to the result, through slots that the copy engine takes in turn.
  TC_DEVICE void finish(const BlockTile& tile, int64_t rows) {
    int64_t residual_at[2];
    const int64_t first = tile.row + group * kGroupRows;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = first + sums_row<false>(half);
      residual_at[half] = p.residual && row < rows ? residual_offset(uint32_t(row)) : -1;
    }
#pragma unroll
    for (int from = 0; from < C.block_n; from += slot_cols)
      store_slot(tile, first, from, residual_at);
  }
  // No bias is -0.0, which leaves -0.0 as it is. All threads have read that of the tile before.
  TC_DEVICE void load_bias(const BlockTile& tile) {
    const T* const bias = static_cast<const T*>(p.bias);
    for (int i = int(threadIdx.x) % kWarpgroup; i < C.block_n; i += kWarpgroup)
      ring.bias[group][i] =
          bias && tile.col + i < p.filters ? float(bias[(tile.col + i) * p.bias_stride]) : -0.0f;
  }
  // Before the block ends: the slots have been read.
  TC_DEVICE void finish_stores() const {
    if (leads()) ptx::cp_async_bulk_wait_group_read<0>();
  }

 private:
  TC_DEVICE static bool leads() { return threadIdx.x % kWarpgroup == 0; }
  TC_DEVICE void meet() const { ptx::bar_sync(kOneConsumer + group, kWarpgroup); }
  TC_DEVICE int last_stage() const { return (read.stage == 0 ? C.stages : read.stage) - 1; }
  TC_DEVICE void release(int stage) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&ring.barriers.empty[stage]);
  }

  TC_DEVICE void step(bool is_first) {
    ptx::mbarrier_wait_parity(&ring.barriers.full[read.stage], read.parity);
    sums.template add_product<T>(ring.stages[read.stage], group * kGroupRows, !is_first);
    sums.template wait<1>();
    if (!is_first) release(last_stage());
    read.advance();
  }

  TC_DEVICE int64_t residual_offset(uint32_t row) const {
    const Place at = place_of_row(p, row);
    return p.residual_at.offset(at.sample, at.row, at.column, 0);
  }

  // The addends of a thread's sums of a slot: two neighbours of both of its rows, every 8 filters.
  struct SlotResidual {
    Pair at[slot_cols / 8][2];
  };
  TC_DEVICE void load_residual(SlotResidual& to, int64_t filter,
                               const int64_t (&residual_at)[2]) const {
    const T* const from = static_cast<const T*>(p.residual);
#pragma unroll
    for (int n = 0; n < slot_cols / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (residual_at[half] >= 0 && filter + n * 8 < p.filters)
          to.at[n][half] = Pair::load(from + residual_at[half] + filter + n * 8);
    }
  }

  // Filters `from` on of 64 rows.
  TC_DEVICE void store_slot(const BlockTile& tile, int64_t first_row, int from,
                            const int64_t (&residual_at)[2]) {
    const int pair = threadIdx.x % 4 * 2;
    SlotResidual residual = {};
    if (p.residual) load_residual(residual, tile.col + from + pair, residual_at);
    ResultSlot<T, C>& slot = ring.slots[group][stores++ % kResultSlots];
    if (leads()) ptx::cp_async_bulk_wait_group_read<kResultSlots - 1>();
    meet();
#pragma unroll
    for (int n = 0; n < slot_cols / 8; n += 2) {
      float x[4][2];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int eight = n + part / 2, half = part % 2;
        sums.pair(x[part], 0, from / 8 + eight, half);
        const float* const bias = &ring.bias[group][from + eight * 8 + pair];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          x[part][e] += bias[e];
          if (p.residual) x[part][e] += residual.at[eight][half][e];
          x[part][e] = activate<C.activation, T>(x[part][e]);
        }
      }
      put(slot, x, n);
    }
    ptx::fence_proxy_async();
    meet();
    if (leads()) {
      const int32_t at[2] = {int32_t(tile.col) + from, int32_t(first_row)};
      ptx::tma_store(&p.out_map, at, slot.at);
      ptx::cp_async_bulk_commit_group();
    }
  }

  // Filters 8 n on of a slot, 16 of them: pairs of a thread's two rows, of 8 filters and the next.
  TC_DEVICE static void put(ResultSlot<T, C>& slot, const float (&x)[4][2], int n) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
    if constexpr (sizeof(T) == 2) {
      uint32_t words[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) words[part] = pack_pair(x[part][0], x[part][1], T{});
      ptx::stmatrix_x4(slot.place(row + lane % 16, n + lane / 16), words);
    } else {  // there is no stmatrix for 4 bytes
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int line = row + part % 2 * 8 + lane / 4, pair = (n + part / 2) * 4 + lane % 4;
        store_vector(reinterpret_cast<float*>(slot.place(line, pair / 2) + pair % 2 * 8),
                     Vec2<float>{x[part][0], x[part][1]});
      }
    }
  }
};

struct ImplicitWgmma {
  static constexpr bool begins_itself = true;
  template <class T, Config C>
  TC_DEVICE static void run(const MappedParams& p) {
    static_assert(C.threads == (C.consumers + 1) * kWarpgroup && C.stages >= 2);
    static_assert(C.block_m == C.consumers * kGroupRows);
    static_assert(C.block_n % result_slot_columns(C, sizeof(T)) == 0);
    static_assert(sizeof(WindowRing<T, C>) == wgmma_shared_bytes(C, sizeof(T)));
    auto& ring = dynamic_shared<WindowRing<T, C>>();
    const int64_t rows = p.batch * p.rows.out * p.columns.out;
    const TileOrder<C.block_m, C.block_n> order(rows, p.filters);
    const uint32_t tiles = order.rows * order.cols;
    const int group = warpgroup_number();
    ring.start(p);
    if (group == C.consumers) {
      give_registers<C.consumers>();
      if (threadIdx.x % kWarpgroup == 0) {
        WindowProducer<T, C> producer{ring, p};
        for (uint32_t i = blockIdx.x; i < tiles; i += gridDim.x) producer.produce(order.at(i));
      }
      __syncwarp();
    } else {
      take_registers<C.consumers>();
      const int taps = int(p.rows.taps * p.columns.taps);
      const int steps = taps * div_ceil(int(p.channels), C.block_k);
      WindowConsumer<T, C> consumer(ring, p, group);
      for (uint32_t i = blockIdx.x; i < tiles; i += gridDim.x) {
        const BlockTile tile = order.at(i);
        consumer.load_bias(tile);
        consumer.consume(steps);
        consumer.finish(tile, rows);
      }
      consumer.finish_stores();
    }
  }
};

}  // namespace tensorcraft::kernel::conv2d
