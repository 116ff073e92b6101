// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/tile/warpgroup_sums.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"
#include "tensorcraft/ops/gemm/parts/promotion.cuh"
#include "tensorcraft/ops/gemm/parts/ring.cuh"

// The consumers of the rungs on wgmma.
namespace tensorcraft::kernel::gemm {

// A warpgroup that multiplies: its rows of a tile, or with ping_pong all of them.
template <class T, class Out, Config C>
struct Consumer {
  static constexpr bool takes_turns = C.schedule == Schedule::ping_pong;
  static constexpr int rows = takes_turns ? C.block_m : C.block_m / C.consumers;
  // Columns of the sums that fill a slot, for 64 rows.
  static constexpr SlotShape slot = slot_shape(C, sizeof(Out));
  static constexpr int slot_cols = C.swap ? slot.rows : slot.cols;
  static constexpr int pieces = C.swap ? kGroupRows / slot.cols : 1;  // slots of these columns
  // Then a stage is read when its products are done, and the other consumers' products hide that.
  static constexpr bool a_registers = kARegisters<T, RingStage<T, C>::a_along_k>;
  static constexpr bool promotes = C.promotion != Promotion::none;
  // By rows, sums change from wgmma's layout to rows in the slots: a loop over rows holds what is
  // done to them once, where pairs of registers would hold it for each pair, reads what it adds as
  // it lies, and stores to any address.
  static constexpr bool by_rows = C.slots == kByRows;
  static constexpr int kPieceCols = C.gated ? 32 : 64, kUnits = 16;
  static constexpr int kRowUnits = kPieceCols / 4;  // of a row of D; kUnits: of a row of sums
  static constexpr int kRowPieces = div_ceil(tile_columns(C), kPieceCols);
  static constexpr int kPieces = rows / kGroupRows * kRowPieces;

  Ring<T, Out, C>& ring;
  const WgmmaParams<C>& p;
  int group;      // number among the consumers
  int first_row;  // of its rows in a tile
  int stores = 0;
  StageCursor<C.stages> read;
  WarpgroupSums<rows, C.block_n, SumOf<T>> sums;
  Promoter<C, rows> promoter;

  TC_DEVICE Consumer(Ring<T, Out, C>& memory, const WgmmaParams<C>& params, int number)
      : ring(memory), p(params), group(number), first_row(takes_turns ? 0 : number * rows) {}

  // Before steps `first` to `end` of a tile, best while the tile in front of it is finished.
  TC_DEVICE void begin(const Tile<C>& tile, int first, int end) {
    if constexpr (promotes) promoter.begin(p, tile, first_row, first, end);
  }
  // Multiplies the next step along k, while the one before it may still be under way; then that is
  // done, and its stage goes back to the producers that fill it.
  TC_DEVICE void consume(bool is_first) {
    ptx::mbarrier_wait_parity(&ring.barriers.full[read.stage], read.parity);
    if constexpr (promotes) {
      promote(is_first);
    } else if constexpr (a_registers) {
      sums.template add_product_of_registers<T>(ring.stages[read.stage], first_row, !is_first);
      sums.template wait<0>();
      release(read.stage);
    } else {
      sums.template add_product<T>(ring.stages[read.stage], first_row, !is_first);
      sums.template wait<1>();
      if (!is_first) release(read.stage == 0 ? C.stages - 1 : read.stage - 1);
    }
    read.advance();
  }
  // After the last step: the sums are complete.
  TC_DEVICE void land() {
    sums.land();
    if constexpr (!a_registers && !promotes)
      release(read.stage == 0 ? C.stages - 1 : read.stage - 1);
  }
  // Serves the steps that have begun, of which there is one at least.
  TC_DEVICE void consume_all(int first, int end) {
    consume(true);
#pragma unroll 1
    for (int step = first + 1; step < end; ++step) consume(false);
    land();
  }

  // Brings the sums to D: through slots, of which the copy engine takes one after another, or by
  // rows, or straight from the registers.
  TC_DEVICE void finish(const Tile<C>& tile) {
    const Epilogue<T, Out, C> epilogue(p, tile);
    if constexpr (by_rows) {
#pragma unroll 1
      for (int piece = 0; piece < kPieces; ++piece) store_piece(epilogue, tile, piece);
    } else {
#pragma unroll
      for (int i = 0; i < rows / kGroupRows; ++i)
        if (!ends_within(epilogue, tile, i)) finish_rows(epilogue, tile, i);
      if constexpr (C.has_groups) finish_last_rows(epilogue, tile);
    }
  }
  // Before the block ends: the slots have been read.
  TC_DEVICE void finish_stores() const {
    if (C.slots == kEngineSlots && leads()) ptx::cp_async_bulk_wait_group_read<0>();
  }

 private:
  // The products of a step, 64 rows after the other: they leave the tensor cores while those of the
  // other consumers are made.
  TC_DEVICE void promote(bool is_first) {
    promoter.begin_step();
    if (is_first) sums.clear();
#pragma unroll
    for (int i = 0; i < rows / kGroupRows; ++i) {
      WarpgroupSums<kGroupRows, C.block_n> part;
      part.template add_product<T>(ring.stages[read.stage], first_row + i * kGroupRows, false);
      const auto scales = promoter.of_step(p, i);
      part.land();
      if (i + 1 == rows / kGroupRows) release(read.stage);
      promoter.add(sums, part, i, scales);
    }
    promoter.advance();
  }
  // Does the group of the tile end in these 64 rows of the sums, or before them? The copy engine
  // stores them all.
  TC_DEVICE bool ends_within(const Epilogue<T, Out, C>& epilogue, const Tile<C>& tile,
                             int i) const {
    if constexpr (!C.has_groups) return false;
    return epilogue.row_end() <
           (C.swap ? tile.col + C.block_n : tile.row + first_row + (i + 1) * kGroupRows);
  }
  // Stores those, by rows.
  TC_DEVICE void finish_last_rows(const Epilogue<T, Out, C>& epilogue, const Tile<C>& tile) const {
    int first = 0;
    while (first < rows / kGroupRows && !ends_within(epilogue, tile, first)) ++first;
#pragma unroll 1
    for (int piece = first * kRowPieces; piece < kPieces; ++piece)
      store_piece(epilogue, tile, piece);
  }

  TC_DEVICE static bool leads() { return threadIdx.x % kWarpgroup == 0; }
  TC_DEVICE void meet() const { ptx::bar_sync(kOneConsumer + group, kWarpgroup); }

  TC_DEVICE void release(int stage) const { release_stage(ring, stage); }

  // 64 rows of the sums through slots, or straight.
  TC_DEVICE void finish_rows(const Epilogue<T, Out, C>& epilogue, const Tile<C>& tile, int i) {
    if constexpr (C.slots == kEngineSlots) {
#pragma unroll
      for (int from = 0; from < tile_columns(C); from += slot_cols)
        store_slot(epilogue, tile, i, from);
    } else {
#pragma unroll
      for (int n = 0; n < tile_columns(C) / 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) store_pair(epilogue, tile, i, n, half);
      }
    }
  }

  // Where a thread's sums of 8 columns, number n, of 64 rows are in the result to the kernel.
  TC_DEVICE int64_t row_at(const Tile<C>& tile, int i, int half) const {
    return tile.row + first_row + i * kGroupRows + sums_row<a_registers>(half);
  }
  TC_DEVICE static int64_t col_at(const Tile<C>& tile, int n) {
    return tile.col + n * 8 + threadIdx.x % 4 * 2;
  }

  TC_DEVICE void store_pair(const Epilogue<T, Out, C>& epilogue, const Tile<C>& tile, int i, int n,
                            int half) const {
    float x[2];
    sums.pair(x, i, n, half);
    const int64_t row = row_at(tile, i, half), col = col_at(tile, n);
    if constexpr (C.swap) {
      epilogue.store({x[0]}, col, row);
      epilogue.store({x[1]}, col + 1, row);
    } else if constexpr (C.gated) {
      float up[2];
      sums.pair(up, i, n + tile_columns(C) / 8, half);
      epilogue.store(x, up, row, col);
    } else {
      epilogue.store(x, row, col);
    }
  }
  // Finishes a pair through the epilogue alone.
  TC_DEVICE void finish_pair(const Epilogue<T, Out, C>& epilogue, float (&x)[2],
                             const Tile<C>& tile, int i, int n, int half) const {
    float pair[2];
    sums.pair(pair, i, n, half);
    const int64_t row = row_at(tile, i, half), col = col_at(tile, n);
    if constexpr (C.swap) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float one[1];
        epilogue.finish(one, {pair[e]}, col + e, row,
                        col + e < epilogue.row_end() && row < p.n ? 1 : 0);
        x[e] = one[0];
      }
    } else {
      epilogue.finish(x, pair, row, col, row < epilogue.row_end() ? min_of(p.n - col, 2) : 0);
    }
  }

  // Units of 4 neighbours; those of 8 rows are in different banks.
  TC_DEVICE float* unit_at(int row, int unit) const {
    auto* units = reinterpret_cast<Vec4<float>*>(&ring.slots[group * 2]);
    return units[row * kUnits + (unit ^ row % 8 * 2)].values;
  }
  TC_DEVICE void put_piece_pair(int i, int n, int half, int row, int col) const {
    float x[2];
    sums.pair(x, i, n, half);
    if constexpr (C.swap) {
      unit_at(col, row / 4)[row % 4] = x[0];
      unit_at(col + 1, row / 4)[row % 4] = x[1];
    } else {
      store_vector(unit_at(row, col / 4) + col % 4, Vec2<float>{x[0], x[1]});
    }
  }

  // Columns `from` on of 64 rows.
  TC_DEVICE void put_piece(int i, int from) const {
#pragma unroll
    for (int n = 0; n < kPieceCols / 8; ++n) {
      if (from + n * 8 >= tile_columns(C)) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = sums_row<a_registers>(half), col = n * 8 + threadIdx.x % 4 * 2;
        put_piece_pair(i, from / 8 + n, half, row, col);
        if constexpr (C.gated)
          put_piece_pair(i, (tile_columns(C) + from) / 8 + n, half, row, kPieceCols + col);
      }
    }
  }
  // Piece number `piece` of the consumer's sums, by rows of D. Only what puts it there is text of
  // its own for each piece: registers have fixed numbers.
  TC_DEVICE void store_piece(const Epilogue<T, Out, C>& epilogue, const Tile<C>& tile,
                             int piece) const {
    const int i = piece / kRowPieces, from = piece % kRowPieces * kPieceCols;
    const int cols = min_of(tile_columns(C) - from, kPieceCols);
    const int64_t first = tile.row + first_row + i * kGroupRows, second = tile.col + from;
    const PieceOfD to = C.swap ? PieceOfD{second, first, cols, kRowUnits}
                               : PieceOfD{first, second, kGroupRows, cols / 4};
    const bool is_inside = to.rows == kGroupRows && to.row + to.rows <= epilogue.row_end() &&
                           to.col + to.units * 4 <= p.n;
    RowsOfC old = {};
    if (is_inside && epilogue.c) read_rows(old, epilogue, to);  // on its way meanwhile
    if (C.slots == kEngineSlots && leads()) ptx::cp_async_bulk_wait_group_read<0>();
    meet();  // the last piece has been read
#pragma unroll
    for (int n = 0; n < kPieces; ++n)
      if (n == piece) put_piece(n / kRowPieces, n % kRowPieces * kPieceCols);
    meet();
    if (is_inside)
      store_inside(epilogue, to, old);
    else
      store_edge(epilogue, to);
  }
  // Rows of D from `row` on, `units` times 4 columns from `col` on.
  struct PieceOfD {
    int64_t row, col;
    int rows, units;
  };
  // Each thread has the same columns of every kPassRows-th row. Inside D it has all of them at
  // once: what it adds is read for all before the first is stored, which the compiler may not do,
  // as C may be D.
  static constexpr int kPassRows = kWarpgroup / kRowUnits, kPasses = kGroupRows / kPassRows;
  using FourOfC = typename Epilogue<T, Out, C>::template InC<4>;
  struct RowsOfC {
    FourOfC at[C.has_c ? kPasses : 1];
  };
  TC_DEVICE static int unit_of_thread() { return threadIdx.x % kRowUnits; }
  TC_DEVICE static int row_of_thread() { return threadIdx.x % kWarpgroup / kRowUnits; }

  TC_DEVICE static void read_rows(RowsOfC& c, const Epilogue<T, Out, C>& epilogue,
                                  const PieceOfD& from) {
    if (unit_of_thread() >= from.units) return;
    const int64_t row = from.row + row_of_thread(), col = from.col + unit_of_thread() * 4;
#pragma unroll
    for (int u = 0; u < (C.has_c ? kPasses : 0); ++u)
      epilogue.read_c(c.at[u], row + u * kPassRows, col, 4);
  }
  // The numbers of each column of a unit; of a gated product also those of the right half of B.
  struct OfUnit {
    typename Epilogue<T, Out, C>::template OfColumns<4> left, right;
  };
  TC_DEVICE static OfUnit columns_of(const Epilogue<T, Out, C>& epilogue, int64_t col, int count) {
    OfUnit of = {};
    of.left = epilogue.template columns<4>(col, count);
    if constexpr (C.gated) of.right = epilogue.template columns<4>(col + epilogue.p.n, count);
    return of;
  }
  TC_DEVICE void store_inside(const Epilogue<T, Out, C>& epilogue, const PieceOfD& to,
                              const RowsOfC& c) const {
    const int unit = unit_of_thread(), first = row_of_thread();
    if (unit >= to.units) return;
    const int64_t row = to.row + first, col = to.col + unit * 4;
    const OfUnit of = columns_of(epilogue, col, 4);
    float x[kPasses][4];
#pragma unroll
    for (int u = 0; u < kPasses; ++u)
      finish_unit(epilogue, x[u], first + u * kPassRows, unit, c.at[C.has_c ? u : 0], of,
                  row + u * kPassRows, col, 4);
#pragma unroll
    for (int u = 0; u < kPasses; ++u) epilogue.store_finished(x[u], row + u * kPassRows, col, 4);
  }
  TC_DEVICE void store_edge(const Epilogue<T, Out, C>& epilogue, const PieceOfD& to) const {
    const int unit = unit_of_thread();
    const int64_t col = to.col + unit * 4;
    if (unit >= to.units || col >= p.n) return;
    const int count = min_of(p.n - col, 4), rows = min_of(epilogue.row_end() - to.row, to.rows);
    const OfUnit of = columns_of(epilogue, col, count);
#pragma unroll 1
    for (int i = row_of_thread(); i < rows; i += kPassRows) {
      float x[4];
      FourOfC old = {};
      if (epilogue.c) epilogue.read_c(old, to.row + i, col, count);
      finish_unit(epilogue, x, i, unit, old, of, to.row + i, col, count);
      epilogue.store_finished(x, to.row + i, col, count);
    }
  }
  // The elements of D at `row` and from `col` on, of unit `unit` of row i of the piece.
  TC_DEVICE void finish_unit(const Epilogue<T, Out, C>& epilogue, float (&x)[4], int i, int unit,
                             const FourOfC& c, const OfUnit& of, int64_t row, int64_t col,
                             int count) const {
    const auto sums_of = [&](float(&to)[4], int n) {
      const Vec4<float> from = load_vector<4>(unit_at(i, n));
      for (int e = 0; e < 4; ++e) to[e] = from[e];
    };
    float sum[4];
    sums_of(sum, unit);
    if constexpr (C.gated) {
      float up[4];
      sums_of(up, kRowUnits + unit);
      epilogue.finish_gated(x, sum, up, of.left, of.right, row, col, count);
    } else {
      epilogue.finish(x, sum, c, of.left, row, col, count);
    }
  }

  // Columns `from` on of 64 rows.
  TC_DEVICE void store_slot(const Epilogue<T, Out, C>& epilogue, const Tile<C>& tile, int i,
                            int from) {
    static_assert(C.slots % pieces == 0 && !C.gated, "a gated tile goes by rows");
    Slot<Out, C>* const to = ring.slots + group * C.slots + stores % C.slots;
    stores += pieces;
    if (leads()) ptx::cp_async_bulk_wait_group_read<C.slots / pieces - 1>();
    meet();
#pragma unroll
    for (int n = 0; n < slot_cols / 8; n += 2) {
      float x[4][2];
#pragma unroll
      for (int part = 0; part < 4; ++part)
        finish_pair(epilogue, x[part], tile, i, from / 8 + n + part / 2, part % 2);
      put_sums<Out, C, a_registers>(to[pieces > 1 ? threadIdx.x / 64 % 2 : 0], x, n);
    }
    ptx::fence_proxy_async();
    meet();
    if (leads()) {
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece) {
        const int row = int(tile.row) + first_row + i * kGroupRows + piece * (kGroupRows / pieces);
        const int col = int(tile.col) + from;
        const bool is_one = C.has_groups && p.d.batch_strides[0] == 0;  // matrix of all groups
        const int32_t at[3] = {C.swap ? row : col, C.swap ? col : row,
                               is_one ? 0 : int32_t(tile.batch)};
        ptx::tma_store(&p.d_map, at, to + piece);
      }
      ptx::cp_async_bulk_commit_group();
    }
  }
};

}  // namespace tensorcraft::kernel::gemm
