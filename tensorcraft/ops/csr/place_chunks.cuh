// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block puts the elements of its chunk where they belong, in their order, so that each column
// keeps that of rows and nothing is sorted. Shared memory holds the next place of each column.
//
// A turn is four elements a thread, whose loads were asked for a turn before. Each warp counts its
// elements of a column in a byte of its own, so that after a barrier every warp knows how many of a
// column the warps before it have, and all places follow at once.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/chunks.cuh"

namespace tensorcraft::kernel::csr {

// The row of stored element k, which is not in front of row `from`.
template <class I>
TC_DEVICE int64_t row_of(const Csr& a, int64_t k, int64_t from) {
  int64_t step = 1;
  while (from + step < a.rows && int64_t(row_begin<I>(a, from + step)) <= k) {
    from += step;
    step *= 2;
  }
  int64_t end = from + step < a.rows ? from + step : a.rows;  // whose row begins behind k
  while (end - from > 1) {
    const int64_t middle = from + (end - from) / 2;
    if (int64_t(row_begin<I>(a, middle)) <= k)
      from = middle;
    else
      end = middle;
  }
  return from;
}

// The row of each element that a thread takes, which only go on.
template <class I>
struct RowCursor {
  int64_t row = 0, end = 0;

  TC_DEVICE int64_t row_of_next(const Csr& a, int64_t k) {
    if (k >= end) {
      row = row_of<I>(a, k, row);
      end = int64_t(row_begin<I>(a, row + 1));
    }
    return row;
  }
};

// What a block keeps of a column: its next place, and the elements of a turn, a byte a warp.
struct ColumnPlaces {
  static constexpr int words = kPlaceWarps / 4;
  uint32_t next, in_turn[words];

  // How many have the warps in front of this one, and how many all.
  TC_DEVICE static uint32_t sum_of_bytes(uint32_t word) {
    const uint32_t pairs = (word & 0x00ff00ffu) + (word >> 8 & 0x00ff00ffu);
    return (pairs + (pairs >> 16)) & 0xffffu;
  }
  TC_DEVICE uint32_t before(int warp) const {
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < words; ++i) {
      const int bits = 8 * (warp - 4 * i);  // of this word
      sum += sum_of_bytes(bits >= 32 ? in_turn[i] : bits > 0 ? in_turn[i] & ((1u << bits) - 1) : 0);
    }
    return sum;
  }
};
struct PlacesOfColumns {
  ColumnPlaces of[1];  // as many as there are columns
};

// The lanes that have the same column. Where columns ascend, each is alone.
TC_DEVICE uint32_t lanes_of_column(int column, int columns) {
  const int lane = int(threadIdx.x) % kWarpSize;
  const int before = __shfl_up_sync(kFullWarp, column, 1u);
  if (!__any_sync(kFullWarp, lane > 0 && column <= before)) return 1u << lane;
  uint32_t same = kFullWarp;
  for (int bit = 1; bit <= columns; bit *= 2) {  // in which -1 is no column
    const bool is_set = (column & bit) != 0;
    const uint32_t set = __ballot_sync(kFullWarp, is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}

template <class T, class I, Config C>
struct PlacedTurn {
  static constexpr int each = 4;
  static constexpr int elements = C.threads * each;

  T values[each];
  int columns[each];  // -1: no element

  TC_DEVICE static int64_t at(int64_t turn, int i) {
    const int warp = int(threadIdx.x) / kWarpSize, lane = int(threadIdx.x) % kWarpSize;
    return turn + (warp * each + i) * kWarpSize + lane;
  }
  TC_DEVICE void load(const Params& p, int64_t turn, int64_t end) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int64_t k = at(turn, i);
      columns[i] = k < end ? column_of<I>(p, k) : -1;
      values[i] = k < end ? static_cast<const T*>(p.a.data)[k * p.a.data_stride] : T(0);
    }
  }
  TC_DEVICE void place(const Params& p, ColumnPlaces* all, int64_t turn, int64_t end,
                       RowCursor<I>& cursor) {
    const int warp = int(threadIdx.x) / kWarpSize, lane = int(threadIdx.x) % kWarpSize;
    const int byte = warp % 4 * 8;
    uint32_t in_warp[each];  // elements of the column in front of this one
    int64_t rows[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const uint32_t same = lanes_of_column(columns[i], int(p.a.cols));
      const int leader = lowest_bit(same & (~same + 1));
      uint32_t earlier = 0;
      if (columns[i] >= 0 && lane == leader)
        earlier =
            atomic_add(&all[columns[i]].in_turn[warp / 4], uint32_t(count_bits(same)) << byte);
      earlier = __shfl_sync(kFullWarp, earlier, leader);
      in_warp[i] = (earlier >> byte & 255u) + uint32_t(count_bits(same & ((1u << lane) - 1)));
      if (at(turn, i) < end) rows[i] = cursor.row_of_next(p.a, at(turn, i));
    }
    __syncthreads();
    uint32_t places[each];
    bool is_first[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (columns[i] < 0) continue;
      const ColumnPlaces& column = all[columns[i]];
      const uint32_t in_turn = column.before(warp) + in_warp[i];
      is_first[i] = in_turn == 0;
      places[i] = column.next + in_turn;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (columns[i] < 0) continue;
      if (is_first[i]) {
        ColumnPlaces& column = all[columns[i]];
        column.next += column.before(kPlaceWarps);
        for (uint32_t& counts : column.in_turn) counts = 0;
      }
      element_of<T>(p.data, places[i]) = values[i];
      element_of<I>(p.indices, places[i]) = I(rows[i]);
    }
    __syncthreads();
  }
};

struct PlaceChunks {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Turn = PlacedTurn<T, I, C>;
    static_assert(C.threads == kPlaceWarps * kWarpSize);
    ColumnPlaces* const all = dynamic_shared<PlacesOfColumns>().of;
    const uint32_t* const before = chunk_counters(p, blockIdx.x);
    for (int c = int(threadIdx.x); c < int(p.a.cols); c += C.threads)
      all[c] = {uint32_t(element_of<I>(p.indptr, c)) + before[c], {}};
    const Chunk<I> chunk(p);
    Turn turn;
    turn.load(p, chunk.begin, chunk.end);
    __syncthreads();
    RowCursor<I> cursor;
    for (int64_t first = chunk.begin; first < chunk.end; first += Turn::elements) {
      Turn later;
      later.load(p, first + Turn::elements, chunk.end);
      turn.place(p, all, first, chunk.end, cursor);
      turn = later;
    }
    // Places of what was left out.
    const int64_t stride = int64_t(gridDim.x) * C.threads;
    for (int64_t k =
             int64_t(element_of<I>(p.indptr, p.a.cols)) + blockIdx.x * C.threads + threadIdx.x;
         k < p.a.stored; k += stride) {
      element_of<T>(p.data, k) = T(0);
      element_of<I>(p.indices, k) = I(0);
    }
  }
};

}  // namespace tensorcraft::kernel::csr
