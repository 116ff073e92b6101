// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies an operand of any strides into lines along k that begin at multiples of 16 bytes, as the
// copy engine needs them. A tile goes through shared memory, so both sides see long runs.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tf32.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gemm/parts/tile.cuh"

namespace tensorcraft::kernel::gemm {

// Words in the order of the copy. Lines are an odd number of words apart, so neither along k nor
// along a column of the tile neighbours share a bank.
template <class T>
struct PackTile {
  uint32_t words[kPackTile][kPackTile * int(sizeof(T)) / 4 + 1];
  TC_DEVICE T& at(int line, int k) { return reinterpret_cast<T*>(words[line])[k]; }
};

// Which tile of which entry a block copies.
struct PackPlace {
  uint32_t entry;
  int64_t line, k;

  TC_DEVICE explicit PackPlace(const PackParams& p) {
    const auto along_k = uint32_t(div_ceil(p.part, kPackTile));
    const auto along_lines = uint32_t(div_ceil(p.lines, kPackTile));
    entry = blockIdx.x / (along_k * along_lines);
    const uint32_t tile = blockIdx.x - entry * (along_k * along_lines);
    line = int64_t(tile / along_k) * kPackTile;
    k = int64_t(tile % along_k) * kPackTile;
  }
};

// The tile's elements, 0 outside the matrix: neighbours read runs along the unit stride, and a
// thread the same place of every kPass-th run. All its loads start before the first is needed.
template <class T, PackConfig C>
TC_DEVICE void load_tile(PackTile<T>& tile, const PackParams& p, const PackPlace& place) {
  constexpr bool kAlongK = C.layout == Layout::row_major;
  constexpr int V = C.vector, kRun = kPackTile / V, kPass = C.threads / kRun;
  constexpr int kLoads = kPackTile / kPass;
  const int in_run = int(threadIdx.x) % kRun * V, first = int(threadIdx.x) / kRun;
  const int64_t run_step = kAlongK ? p.in.row_stride : p.in.col_stride;
  const int lines = min_of(p.lines - place.line, kPackTile);
  const int ks = place.k < p.k ? min_of(p.k - place.k, kPackTile) : 0;
  const int runs = in_run < (kAlongK ? ks : lines) ? (kAlongK ? lines : ks) : 0;
  const T* from = batch_entry<const T>(p, p.in, place.entry) + place.line * p.in.row_stride +
                  place.k * p.in.col_stride + first * run_step +
                  in_run * (kAlongK ? p.in.col_stride : p.in.row_stride);
  AlignedVector<T, V> values[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    values[i] = {};
    if (first + i * kPass < runs) values[i] = load_vector<V>(from);
    from += kPass * run_step;
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int run = first + i * kPass;
      (kAlongK ? tile.at(run, in_run + v) : tile.at(in_run + v, run)) = values[i][v];
    }
  }
}

// x = hi + lo up to 2^-22 |x|, both tf32, and no product of parts exceeds float32 unless that of
// the wholes does. An infinity is 1 + infinity: as hi it would meet the lo of the other operand,
// which is 0 or has another sign, and become NaN; so it meets the other's hi alone.
struct Tf32Pair {
  uint32_t hi, lo;

  TC_DEVICE explicit Tf32Pair(uint32_t x) {
    constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u, kOne = 0x3f800000u;
    constexpr uint32_t kFirstCutOff = 0x7f7ff000u;
    const float value = bit_cast<float>(x);
    const bool is_infinite = (x & ~kSign) == kInfinity;
    hi = is_infinite ? (x & kSign) | kOne : tf32_of(value);
    const float rest = value - bit_cast<float>(hi);
    lo = ((x & ~kSign) < kFirstCutOff ? to_tf32(rest) : bit_cast<uint32_t>(rest)) & kTf32Bits;
  }
};

// Writes whole units of 16 bytes, up to the end of a part.
template <class T, PackConfig C>
TC_DEVICE void store_tile(const PackTile<T>& tile, const PackParams& p, const PackPlace& place) {
  constexpr int kUnit = kVectorSize<T>, kUnits = kPackTile / kUnit;
  T* const out = reinterpret_cast<T*>(static_cast<unsigned char*>(p.workspace) + p.out_at) +
                 (place.entry * p.lines + place.line) * (C.parts * p.part) + place.k;
#pragma unroll
  for (int i = 0; i < kUnits * kPackTile / C.threads; ++i) {
    // A warp takes 8 units of each of 4 lines, or all 4 of each of 8.
    constexpr int kOfLine = kUnits < 8 ? kUnits : 8, kLines = 32 / kOfLine;
    const int item = int(threadIdx.x) + i * C.threads;
    const int unit = item % kOfLine + item / 32 % (kUnits / kOfLine) * kOfLine;
    const int line = item / kOfLine % kLines + item / 32 / (kUnits / kOfLine) * kLines;
    if (line >= p.lines - place.line || unit * kUnit >= p.part - place.k) continue;
    Vec4<uint32_t> words;
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = tile.words[line][unit * 4 + w];
    auto* const to = reinterpret_cast<uint32_t*>(out + line * (C.parts * p.part) + unit * kUnit);
    if constexpr (C.parts == 1) {
      if constexpr (sizeof(T) == 4)  // the copy engine would make the largest numbers infinite
        for (uint32_t& word : words.values) word = tf32_of(bit_cast<float>(word));
      store_vector(to, words);
    } else {
      Vec4<uint32_t> low;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const Tf32Pair pair(words[w]);
        words[w] = pair.hi;
        low[w] = pair.lo;
      }
      store_vector(to, words);
      store_vector(to + p.part, low);
    }
  }
}

struct Pack {
  template <class T, PackConfig C>
  TC_DEVICE static void run(const PackParams& p) {
    static_assert(C.parts == 1 || (C.parts == kTf32Parts && sizeof(T) == 4));
    auto& tile = static_shared<PackTile<T>>();
    const PackPlace place(p);
    load_tile<T, C>(tile, p, place);
    __syncthreads();
    store_tile<T, C>(tile, p, place);
  }
};

}  // namespace tensorcraft::kernel::gemm
