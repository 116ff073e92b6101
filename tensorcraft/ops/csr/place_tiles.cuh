// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block has a tile: it loads the runs of its rows, sorts the elements by column in shared memory,
// and writes what is neighbours there to neighbours. Every element is read once and written once.
//
// A warp has neighbouring stretches, each up to 32 elements of one row, whose columns differ if
// they ascend: then no lane looks for others of its column. All loads of a warp are in flight at
// once.
#include "tensorcraft/ops/csr/key_places.cuh"
#include "tensorcraft/ops/csr/left_out.cuh"
#include "tensorcraft/ops/csr/tiles.cuh"

namespace tensorcraft::kernel::csr {

// The stored elements of a row that belong to a tile, or may.
struct RowRun {
  int64_t begin = 0, size = 0;
  bool is_whole_row = false;

  TC_DEVICE int64_t stretches() const { return div_ceil(size, int64_t(kWarpSize)); }
};
// A run as it is listed.
struct ListedRun {
  uint32_t begin = 0, end = 0;
};
template <class I>
TC_DEVICE RowRun run_of_row(const Params& p, int64_t row, ListedRun listed) {
  const bool is_whole_row = listed.begin == kWholeRow;
  const int64_t begin = is_whole_row ? int64_t(row_begin<I>(p.a, row)) : int64_t(listed.begin);
  const int64_t end = is_whole_row ? int64_t(row_begin<I>(p.a, row + 1)) : int64_t(listed.end);
  return {begin, end > begin ? end - begin : 0, is_whole_row};
}

// Up to 32 neighbours of a row.
struct Stretch {
  uint32_t begin;
  uint8_t size, row;  // among those of the tile that are sorted at once
  uint16_t is_whole_row;
};

template <Config C>
struct TileShared {
  static constexpr int stretches_of_all = C.threads / kWarpSize * kStretches;

  union {
    Carried elements[stretches_of_all * kWarpSize];
    int32_t values[stretches_of_all][kWarpSize];  // before elements are sorted
  };
  KeyPlaces<C, kTileColumns> places;
  uint32_t column_begins[kTileColumns];
  Stretch stretches[stretches_of_all];
  BlockScan<int64_t> sums;
  BlockReduce<uint32_t> before;
};

template <class T, class I, Config C>
struct TileBlock {
  static_assert(kTileColumns <= C.threads && kTileRows <= C.threads);
  static constexpr int each = kStretches;
  static constexpr uint32_t none = ~0u;

  const Params& p;
  TileShared<C>& shared;
  const int bucket;
  const int64_t first_column;
  const int columns;  // of the bucket, inside the matrix
  uint32_t next = 0;  // place in the result for the column of this thread

  TC_DEVICE TileBlock(const Params& params, TileShared<C>& memory, int own)
      : p(params),
        shared(memory),
        bucket(own),
        first_column(int64_t(own) << params.low_bits),
        columns(int(min_of(int64_t(1) << params.low_bits, params.a.cols - first_column))) {}

  TC_DEVICE static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

  // Where the tile's elements of each column go.
  TC_DEVICE void begin_columns(int64_t tile_row, int64_t tile_rows) {
    const bool has_column = int(threadIdx.x) < columns;
    const int64_t column = first_column + threadIdx.x;
    const uint32_t own = has_column ? counters(p)[column] : 0;
    const uint32_t above = has_column ? chunk_counters(p, tile_row * kChunksOfTile)[column] : 0;
    uint32_t in_front = 0;
#pragma unroll 4
    for (int c = int(threadIdx.x); c < int(first_column); c += C.threads)
      in_front += counters(p)[c];
    uint32_t at = block_sum(shared.before, in_front);
    const uint32_t begin = sum_in_front<C.threads>(shared.places.sums, own, at);
    next = begin + above;
    if (has_column && tile_row == 0) element_of<I>(p.indptr, column) = I(begin);
    if (bucket != p.buckets - 1) return;
    if (tile_row == 0 && threadIdx.x == 0) element_of<I>(p.indptr, p.a.cols) = I(at);
    clear_left_out<T, I, C>(p, at, tile_row, tile_rows);
  }

  // Lists those of a row, `first` of them in front, that lie among as many as the block takes at
  // once.
  TC_DEVICE void list_stretches(const RowRun& run, int64_t first) {
    const int64_t end = min_of(run.stretches(), TileShared<C>::stretches_of_all - first);
    for (int64_t i = first < 0 ? -first : 0; i < end; ++i) {
      const int64_t done = i * kWarpSize;
      shared.stretches[first + i] = {.begin = uint32_t(run.begin + done),
                                     .size = uint8_t(min_of(run.size - done, kWarpSize)),
                                     .row = uint8_t(threadIdx.x),
                                     .is_whole_row = uint16_t(run.is_whole_row)};
    }
  }

  // Fills the list behind `count` stretches with ones that warps leave out.
  TC_DEVICE void fill_stretches(int count) {
    for (int i = count + int(threadIdx.x); i < TileShared<C>::stretches_of_all; i += C.threads)
      shared.stretches[i] = {.begin = 0, .size = 1, .row = 0, .is_whole_row = 0};
  }

  // As lanes_of_key() says, in little code: few rows need it.
  TC_DEVICE uint32_t lanes_of_column(int key) const {
    uint32_t same = kFullWarp;
#pragma unroll 1
    for (int bit = 0; bit <= p.low_bits; ++bit) same &= lanes_of_bit(key, bit);
    return same;
  }

  // Sorts the elements of so many stretches, and writes them. Between barriers.
  TC_DEVICE void place(int count, int64_t first_row) {
    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    const int share = div_ceil(count, C.threads / kWarpSize), first = warp * share;
    const int own = count - first < share ? count - first : share;  // or fewer than 0
    // Also those of the next warp: without a condition, loads need not wait for one another.
    const Stretch* const stretches = &shared.stretches[first];
    I listed[each];
    T values[each];
    bool has_whole_rows = false;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const Stretch s = stretches[i];
      const uint32_t k = s.begin + (lane < s.size ? lane : s.size - 1);
      listed[i] = static_cast<const I*>(p.a.indices)[k * p.a.indices_stride];
      values[i] = static_cast<const T*>(p.a.data)[k * p.a.data_stride];
      has_whole_rows = has_whole_rows || s.is_whole_row;
    }
    uint32_t keys[each];  // columns, and above them ranks; none: no element
    using Unsigned = Select<sizeof(I) == 4, uint32_t, uint64_t>;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const Unsigned key = Unsigned(listed[i]) - Unsigned(first_column);
      keys[i] =
          i < own && lane < stretches[i].size && key < Unsigned(columns) ? uint32_t(key) : none;
      if (i < own) shared.values[first + i][lane] = values[i];
    }
    const auto take_rank = [&](uint32_t& key, uint32_t rank) {
      if (key != none) key |= rank << 16;
    };
    if (!has_whole_rows) {
#pragma unroll
      for (int i = 0; i < each; ++i) take_rank(keys[i], shared.places.rank(int(keys[i])));
    } else {
#pragma unroll
      for (int i = 0; i < each; ++i)
        take_rank(keys[i], shared.places.rank(int(keys[i]), lanes_of_column(int(keys[i]))));
    }
    __syncthreads();
    shared.places.scan(columns);
    if (int(threadIdx.x) < columns) {
      const uint32_t* const begin = &shared.places.begin[threadIdx.x];
      shared.column_begins[threadIdx.x] = next - begin[0];
      next += begin[1] - begin[0];
    }
#pragma unroll
    for (int i = 0; i < each; ++i)
      if (i < own) values[i] = T(shared.values[first + i][lane]);
    __syncthreads();  // all are read
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (keys[i] == none) continue;
      const uint32_t key = keys[i] & 0xffff;
      shared.elements[shared.places.place(int(key), keys[i] >> 16)] = {
          uint32_t(stretches[i].row) << 16 | key, values[i]};
    }
    __syncthreads();
    const int kept = int(shared.places.begin[columns]);
    for (int i = int(threadIdx.x); i < kept; i += C.threads) {
      const Carried element = shared.elements[i];
      const uint32_t to = shared.column_begins[element.word & 0xffff] + uint32_t(i);
      if (to >= uint32_t(p.a.stored)) continue;  // rows overlap
      element_of<T>(p.data, to) = T(element.value);
      element_of<I>(p.indices, to) = I(first_row + (element.word >> 16));
    }
  }
};

struct PlaceTiles {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& shared = dynamic_shared<TileShared<C>>();
    static_assert(sizeof(shared) <= tile_shared_bytes(C));
    constexpr int64_t kMost = TileShared<C>::stretches_of_all;
    const int64_t tile_row = blockIdx.x / p.buckets, rows = p.chunk * kChunksOfTile;
    const int64_t begin = tile_row * rows, end = begin + rows < p.a.rows ? begin + rows : p.a.rows;
    TileBlock<T, I, C> block(p, shared, int(blockIdx.x % p.buckets));
    const auto listed_from = [&](int64_t first) -> ListedRun {
      const int64_t row = first + threadIdx.x;
      if (int(threadIdx.x) >= kTileRows || row >= end) return {};
      const uint32_t* const run_begins = &run_begins_of_row(p, row)[block.bucket];
      return {run_begins[0], run_begins[1]};
    };
    int64_t first = begin;
    do {  // once for a matrix without rows too
      const ListedRun listed = listed_from(first);
      if (first == begin) block.begin_columns(tile_row, gridDim.x / p.buckets);
      const RowRun run = run_of_row<I>(p, first + threadIdx.x, listed);
      int64_t all = 0;
      const int64_t before = sum_in_front<C.threads>(shared.sums, run.stretches(), all);
      for (int64_t done = 0; done < all; done += kMost) {
        const int count = int(all - done < kMost ? all - done : kMost);
        block.list_stretches(run, before - done);
        block.fill_stretches(count);
        shared.places.clear(block.columns);
        __syncthreads();
        block.place(count, first);
        __syncthreads();
      }
      first += kTileRows;
    } while (first < end);
  }
};

}  // namespace tensorcraft::kernel::csr
