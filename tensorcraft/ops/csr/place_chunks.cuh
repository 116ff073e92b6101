// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block puts the elements of its chunk where they belong, in their order, so that each column
// keeps that of rows and nothing is sorted. Shared memory holds the next place of each column.
//
// A turn is kEach elements a thread, whose loads were asked for a turn before. Its warps go one
// after the other to the places; what takes long, the search for rows, the lanes of equal columns
// and the stores, they do at the same time.
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/csr/chunks.cuh"
#include "tensorcraft/ops/csr/left_out.cuh"

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
  // `row`: of the thread's element before.
  TC_DEVICE void place(const Params& p, uint32_t* next, int64_t turn, int64_t end, int64_t& row) {
    const int lane = int(threadIdx.x) % kWarpSize;
    uint32_t same[each], places[each] = {};
    int64_t rows[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      same[i] = lanes_of_column(columns[i], int(p.a.cols));
      if (at(turn, i) < end) row = row_of<I>(p.a, at(turn, i), row);
      rows[i] = row;
    }
    for (int warp = 0; warp < C.threads / kWarpSize; ++warp) {
      if (int(threadIdx.x) / kWarpSize == warp) {
#pragma unroll
        for (int i = 0; i < each; ++i) {
          if (columns[i] >= 0) places[i] = next[columns[i]];
          __syncwarp();
          const int rank = count_bits(same[i] & ((1u << lane) - 1));
          if (columns[i] >= 0 && rank == 0) next[columns[i]] = places[i] + count_bits(same[i]);
          __syncwarp();
          places[i] += rank;
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (columns[i] < 0) continue;
      element_of<T>(p.data, places[i]) = values[i];
      element_of<I>(p.indices, places[i]) = I(rows[i]);
    }
  }
};

struct PlaceChunks {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Turn = PlacedTurn<T, I, C>;
    uint32_t* const next = dynamic_shared<ColumnCounters>().of;
    const uint32_t* const before = chunk_counters(p, blockIdx.x);
    for (int c = int(threadIdx.x); c < int(p.a.cols); c += C.threads)
      next[c] = uint32_t(element_of<I>(p.indptr, c)) + before[c];
    const Chunk<I> chunk(p);
    Turn turn;
    turn.load(p, chunk.begin, chunk.end);
    __syncthreads();
    int64_t row = 0;
    for (int64_t first = chunk.begin; first < chunk.end; first += Turn::elements) {
      Turn later;
      later.load(p, first + Turn::elements, chunk.end);
      turn.place(p, next, first, chunk.end, row);
      turn = later;
    }
    clear_left_out<T, I, C>(p, int64_t(element_of<I>(p.indptr, p.a.cols)), blockIdx.x, gridDim.x);
  }
};

}  // namespace tensorcraft::kernel::csr
