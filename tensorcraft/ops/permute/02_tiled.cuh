// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block turns a square tile in shared memory, so both sides of global memory see lines of 128
// bytes or more in 16-byte accesses. A thread gathers a word (the columns that 4 bytes hold) of as
// many rows as 16 bytes hold elements, and its registers then hold whole units of output rows:
//   words read / bytes moved = 1 / 4 for elements of 1, 2 and 4 bytes, 1 / 8 for 8 bytes.
// Rows are XOR-swizzled by their unit of the output, so that neither side has bank conflicts.
// Sides that 16-byte accesses cannot touch move single elements, through padded rows.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/streamed.cuh"
#include "tensorcraft/ops/permute/params.h"

namespace tensorcraft::kernel::permute {

template <int bytes>
struct WordOf {
  using Type = uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint64_t;
};

template <class T, Config C>
struct Tile {
  using Word = typename WordOf<int(sizeof(T))>::Type;
  static constexpr int kBytes = int(sizeof(T)), kWord = int(sizeof(Word)),
                       kUnit = kVectorSize<T>,         // elements of 16 bytes
      kUnits = C.tile / kUnit,                         // of a row
      kPacked = kWord / kBytes;                        // elements of a word
  static constexpr bool kSwizzled = C.vector_out > 1;  // else padded
  static constexpr int kPitch = C.tile * kBytes + (kSwizzled ? 0 : kWord);
  static_assert(kUnits % 8 == 0, "a swizzle needs 8 units in a row");

  alignas(16) unsigned char bytes[C.tile * kPitch];

  TC_HOST_DEVICE static constexpr int offset(int row, int col) {
    const int byte = col * kBytes;
    return row * kPitch + (kSwizzled ? byte ^ (row / kUnit % 8 * 16) : byte);
  }
  template <class V>
  TC_DEVICE V& at(int row, int col) {
    return *reinterpret_cast<V*>(bytes + offset(row, col));
  }
  // A padded row begins at a word, not at a unit.
  TC_DEVICE void put(int row, int col, const AlignedVector<T, kUnit>& unit) {
    if constexpr (kSwizzled) {
      at<AlignedVector<T, kUnit>>(row, col) = unit;
    } else {
      const auto words = bit_cast<AlignedVector<Word, kVectorBytes / kWord>>(unit);
      for (int i = 0; i < words.size(); ++i) at<Word>(row, col + i * kPacked) = words[i];
    }
  }
};

// A warp takes 8 units of each of 4 lines: lines of 128 bytes in global memory, and all banks.
struct Place {
  int unit, line;
};
template <int units>
TC_HOST_DEVICE constexpr Place place(uint32_t item) {
  constexpr uint32_t kEights = units / 8;
  return {int(item % 8 + item / 32 % kEights * 8), int(item / 8 % 4 + item / 32 / kEights * 4)};
}

template <class T, Config C>
struct Corner {
  const T* in;
  T* out;
  int64_t out_at;  // of it, from `out`
  int rows, cols;  // of the tile that are in the matrix
};

TC_DEVICE int at_most(int most, int64_t n) { return n < most ? int(n) : most; }

// The tile of this block. Blocks go along `band` tiles of a row, then to the next row, so that
// those that run together read and write long runs of both sides.
template <class T, Config C>
TC_DEVICE Corner<T, C> corner(const Params& p) {
  const uint32_t matrix = p.by_matrix.quotient(blockIdx.x),
                 tile = blockIdx.x - matrix * p.by_matrix.divisor, band = p.by_band.quotient(tile),
                 in_band = tile - band * p.by_band.divisor;
  const Divider& by_width = band == p.last_band ? p.by_last_width : p.by_width;
  const uint32_t line = by_width.quotient(in_band),
                 column = band * p.by_width.divisor + in_band - line * by_width.divisor;
  Offsets at{0, 0};
  if (p.axes.count > 0) at = p.axes.offsets(matrix);
  const int64_t row = int64_t(line) * C.tile, col = int64_t(column) * C.tile;
  return {static_cast<const T*>(p.in) + at.in + row * p.in_step + col, static_cast<T*>(p.out),
          at.out + col * p.out_step + row, at_most(C.tile, p.rows - row),
          at_most(C.tile, p.cols - col)};
}

// Beyond the edges the last row and column are read again: without branches all loads of a thread
// start before the first is needed.
template <class T, Config C>
TC_DEVICE void load_tile(Tile<T, C>& tile, const Corner<T, C>& from, int64_t step) {
  using Shape = Tile<T, C>;
  constexpr int V = C.vector_in, kLoads = C.tile * C.tile / V / C.threads,
                kInFlight = kLoads < 8 ? kLoads : 8;
  const auto place_of = [](int i) {
    const uint32_t item = threadIdx.x + uint32_t(i * C.threads);
    return V > 1 ? place<Shape::kUnits>(item) : Place{int(item % C.tile), int(item / C.tile)};
  };
  const uint64_t policy = stream_policy(int64_t(gridDim.x) * (C.tile * C.tile * Shape::kBytes));
  for (int first = 0; first < kLoads; first += kInFlight) {
    AlignedVector<T, V> values[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const Place at = place_of(first + i);
      const int row = at_most(from.rows - 1, at.line), col = at_most(from.cols - V, at.unit * V);
      values[i] = load_streamed<V>(from.in + row * step + col, policy);
    }
    __syncwarp();  // else the compiler waits for each load before the next, to save registers
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const Place at = place_of(first + i);
      if constexpr (V > 1)
        tile.put(at.line, at.unit * V, values[i]);
      else
        tile.template at<T>(at.line, at.unit) = values[i][0];
    }
  }
}

// Four bytes of a unit of column `c`: of 4 / bytes rows, each of which is a word.
template <int bytes>
TC_DEVICE uint32_t packed(const uint32_t* rows, int c) {
  if constexpr (bytes == 4) return rows[0];
  const int shift = 8 * bytes * c;
  if constexpr (bytes == 2) return (rows[0] >> shift & 0xffff) | rows[1] >> shift << 16;
  return (rows[0] >> shift & 0xff) | (rows[1] >> shift & 0xff) << 8 |
         (rows[2] >> shift & 0xff) << 16 | rows[3] >> shift << 24;
}

// The unit of column `c` in the words of its rows.
template <int bytes>
TC_DEVICE AlignedVector<uint32_t, 4> unit_of(const uint32_t* rows, int c) {
  constexpr int step = 4 / bytes;
  return {{packed<bytes>(rows, c), packed<bytes>(rows + step, c), packed<bytes>(rows + 2 * step, c),
           packed<bytes>(rows + 3 * step, c)}};
}
template <int bytes>
TC_DEVICE AlignedVector<uint64_t, 2> unit_of(const uint64_t* rows, int) {
  return {{rows[0], rows[1]}};
}

// Units of output rows: each column of the tile is one.
template <class T, Config C>
TC_DEVICE void store_units(Tile<T, C>& tile, const Corner<T, C>& to, int64_t step) {
  using Shape = Tile<T, C>;
  using Word = typename Shape::Word;
  constexpr int N = Shape::kUnit, kColumns = Shape::kPacked,
                kItems = Shape::kUnits * C.tile / kColumns / C.threads;
  // Counted in units from an address that is aligned: of one that elements were added to the
  // compiler does not know it, and would store 4 bytes at a time.
  auto* const out = reinterpret_cast<AlignedVector<Word, kVectorBytes / Shape::kWord>*>(to.out);
  const int64_t first = to.out_at / N, unit_step = step / N;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const Place at = place<Shape::kUnits>(threadIdx.x + uint32_t(i * C.threads));
    const int row = at.unit * N, col = at.line * kColumns;
    if (row >= to.rows || col >= to.cols) continue;
    Word words[N];
#pragma unroll
    for (int k = 0; k < N; ++k) words[k] = tile.template at<Word>(row + k, col);
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (col + c < to.cols)
        out[first + (col + c) * unit_step + at.unit] = unit_of<Shape::kBytes>(words, c);
  }
}

template <class T, Config C>
TC_DEVICE void store_elements(Tile<T, C>& tile, const Corner<T, C>& to, int64_t step) {
#pragma unroll 8
  for (uint32_t item = threadIdx.x; item < uint32_t(C.tile * C.tile); item += C.threads) {
    const int row = int(item % C.tile), col = int(item / C.tile);
    if (row < to.rows && col < to.cols)
      to.out[to.out_at + col * step + row] = tile.template at<T>(row, col);
  }
}

struct Tiled {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    auto& tile = static_shared<Tile<T, C>>();
    const Corner<T, C> here = corner<T, C>(p);
    load_tile(tile, here, p.in_step);
    __syncthreads();
    if constexpr (C.vector_out > 1)
      store_units(tile, here, p.out_step);
    else
      store_elements(tile, here, p.out_step);
  }
};

}  // namespace tensorcraft::kernel::permute
