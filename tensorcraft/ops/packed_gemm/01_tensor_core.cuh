// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp computes 16 rows of W for 8 rows of a by mma.sync, with W as the operand of
// 16 rows, so that few tokens waste little. A lane reads 16 bytes of codes of two rows and the
// elements of a that belong to them: what is summed along k may be in any order, if both operands
// have the same, so neither goes through shared memory. Codes become exact small numbers in
// registers, once for all tokens of the block; their scale multiplies the sum of 32 products, and
// of groups of 16 the numbers, which stays exact too:
//   bytes of W read = n k / 2, for up to `tokens` rows of a.
// What code 0 means, if that is a float z and a scale s, is no small number; the sum of elements of
// a is another product, with ones:
//   sum a (s code + z) = s sum a code + z sum a.
// The warps of a block have parts of k, so that enough bytes are in flight; their sums are added in
// the order of warps.
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/packed_gemm/weight.cuh"

namespace tensorcraft::kernel::packed_gemm {

inline constexpr int kPieces = 4;  // of a step: 32 along k each, of which a lane has 8
using CodeWords = Packed<uint32_t, kPieces>;

TC_DEVICE void multiply(float (&sums)[4], const uint32_t (&w)[4], const uint32_t (&x)[2], f16) {
  ptx::mma_m16n8k16_f32_f16_f16_f32(sums, w, x, sums);
}
TC_DEVICE void multiply(float (&sums)[4], const uint32_t (&w)[4], const uint32_t (&x)[2], bf16) {
  ptx::mma_m16n8k16_f32_bf16_bf16_f32(sums, w, x, sums);
}

// Are scales so near, and of so few digits, that they multiply the numbers? Else they multiply
// sums.
template <class S>
inline constexpr bool kScalesNumbers = false;
template <>
inline constexpr bool kScalesNumbers<e4m3> = true;

template <Config C>
inline constexpr bool kHasOffsets = C.zeros == Zeros::offsets;

template <class T>
inline constexpr bool kIsF16 = false;
template <>
inline constexpr bool kIsF16<f16> = true;

TC_DEVICE uint32_t twice(float x, bf16) { return pack_pair(x, x, bf16{}); }
TC_DEVICE uint32_t twice(float x, f16) { return pack_pair(x, x, f16{}); }

// Makes numbers of two codes, in bits 0 to 3 and 16 to 19 of a word: halves of a word, exact.
template <class T, class S>
struct Numbers {
  static constexpr bool kIsHalf = kIsF16<T>;
  // A code in the lowest bits of this is the number plus it: 128 or 1024.
  static constexpr uint32_t kBase = kIsHalf ? 0x64006400u : 0x43004300u;
  uint32_t by;  // of int4 what is added, else the scale
  TC_DEVICE explicit Numbers(const Scale& scale)
      : by(kIsInt4<S>          ? twice(-float((kIsHalf ? 1024 : 128) + scale.zero), T{})
           : kScalesNumbers<S> ? twice(scale.factor, T{})
                               : 0) {}

  TC_DEVICE uint32_t of(uint32_t codes) const {
    if constexpr (kIsInt4<S>) {
      const uint32_t one = twice(1, T{});
      return fma_pair((codes & 0x000f000fu) | kBase, one, by, T{});
    } else {
      // Two bits of exponent and one of mantissa go where T has its own: the biases differ by
      // 2^126 or 2^14, and without an exponent both formats are the mantissa alone.
      constexpr uint32_t kNegativeZero = 0x80008000u;
      const uint32_t bits = kIsHalf ? codes << 9 & 0x0e000e00u : codes << 6 & 0x01c001c0u;
      const uint32_t number =
          fma_pair(bits | (codes << 12 & 0x80008000u), twice(kIsHalf ? 0x1p14f : 0x1p126f, T{}),
                   kNegativeZero, T{});
      return kScalesNumbers<S> ? fma_pair(number, by, kNegativeZero, T{}) : number;
    }
  }
};

// The scales of what a lane takes of one row of W in a step, as they lie in memory: nothing here
// waits for them.
template <class S, Groups G, bool kOffsets, bool kInt4 = kIsInt4<S>>
struct Scales {
  static constexpr int kCount = G == Groups::one ? 1 : kPieces;
  S scales[kCount], offsets[kCount];
  int zeros[kCount];
  // `k` is where the step begins.
  TC_DEVICE void load(const Params& p, int64_t row, int k) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const int64_t at = row * p.groups + p.by_group.quotient(uint32_t(k + 32 * j));
      scales[j] = static_cast<const S*>(p.scales)[at];
      if constexpr (kOffsets)
        offsets[j] = static_cast<const S*>(p.offsets)[at];
      else
        zeros[j] = p.zeros ? int(p.zeros[at]) : 8;
    }
  }
  TC_DEVICE Scale of(int j, int) const {
    const int at = kCount == 1 ? 0 : j;
    if constexpr (kOffsets) return {scale_value(scales[at]), 0, scale_value(offsets[at])};
    return {scale_value(scales[at]), zeros[at]};
  }
};
// Four neighbours are one access.
template <class S, bool kOffsets>
struct Scales<S, Groups::four, kOffsets, true> {
  Packed<S, kPieces> scales, offsets;
  uint32_t zeros;
  TC_DEVICE void load(const Params& p, int64_t row, int k) {
    const int64_t at = row * p.groups + k / 32;
    scales = Packed<S, kPieces>::load(static_cast<const S*>(p.scales) + at);
    if constexpr (kOffsets)
      offsets = Packed<S, kPieces>::load(static_cast<const S*>(p.offsets) + at);
    else
      zeros = p.zeros ? *reinterpret_cast<const uint32_t*>(p.zeros + at) : 0x08080808u;
  }
  TC_DEVICE Scale of(int j, int) const {
    if constexpr (kOffsets) return {scales[j], 0, offsets[j]};
    return {scales[j], int(zeros >> 8 * j & 255)};
  }
};
// Of e2m1 each piece has one or two, and those of a step are one access.
template <class S, Groups G>
struct Scales<S, G, false, false> {
  static constexpr int kOfPiece = kScalesNumbers<S> ? 2 : 1;
  Packed<S, kPieces * kOfPiece> all;
  TC_DEVICE void load(const Params& p, int64_t row, int k) {
    all = Packed<S, kPieces * kOfPiece>::load(static_cast<const S*>(p.scales) + row * p.groups +
                                              k / 32 * kOfPiece);
  }
  TC_DEVICE Scale of(int j, int lane) const {
    const int at = kOfPiece * j, shift = at % 4 * 8 + (kScalesNumbers<S> ? lane / 2 * 8 : 0);
    return {scale_value(bit_cast<S>(uint8_t(all.words[at / 4] >> shift))), 0};
  }
};

struct TensorCore {
  template <class T, class S, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kWarps = C.threads / 32, kTiles = C.tokens / 8, kRows = rows_of_block(C);
    constexpr int kRowsOfWarp = 16 * C.row_tiles;
    struct Shared {
      float sums[kWarps][C.row_tiles][kTiles][32][4];
    };
    const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const int64_t row_blocks = (p.n + kRows - 1) / kRows;
    const int64_t first_token = blockIdx.x / row_blocks * C.tokens;
    const int64_t first_row = blockIdx.x % row_blocks * kRows;
    float sums[C.row_tiles][kTiles][4] = {};
    const int64_t own_row = first_row + warp / C.parts * kRowsOfWarp + lane / 4;
    const int64_t own_token = first_token + lane / 4;
    // Rows past the last are the last once more, and not stored: no load waits for a branch.
    const auto row_of = [&](int r) { return own_row + 8 * r < p.n ? own_row + 8 * r : p.n - 1; };
#pragma unroll(kIsInt4<S> || C.tokens > 16 ? 1 : 2)
    for (int k = warp % C.parts * kCodesOfBlock; k < int(p.k); k += C.parts * kCodesOfBlock) {
      CodeWords codes[C.row_tiles][2];  // of rows g and g + 8 of each tile
      Scales<S, C.groups, kHasOffsets<C>> scales[C.row_tiles][2];
#pragma unroll
      for (int r = 0; r < 2 * C.row_tiles; ++r) {
        const auto* const row =
            reinterpret_cast<const uint32_t*>(p.codes + (row_of(r) * p.k + k) / 2);
        codes[r / 2][r % 2] = CodeWords::load(row + 4 * (lane % 4));
      }
#pragma unroll
      for (int r = 0; r < 2 * C.row_tiles; ++r) scales[r / 2][r % 2].load(p, row_of(r), k);
#pragma unroll
      for (int j = 0; j < kPieces; ++j)
        add<T, S, C>(sums, codes, scales, j, lane % 4, [&](int tile) {
          const int64_t token = own_token + 8 * tile < p.m ? own_token + 8 * tile : p.m - 1;
          return Packed<T, 8>::load(static_cast<const T*>(p.a) + token * p.a_strides[0] + k +
                                    32 * j + lane % 4 * 8);
        });
    }
    auto& shared = static_shared<Shared>();
    for (int r = 0; r < C.row_tiles; ++r)
      for (int tile = 0; tile < kTiles; ++tile)
        for (int i = 0; i < 4; ++i) shared.sums[warp][r][tile][lane][i] = sums[r][tile][i];
    __syncthreads();
    for (int i = int(threadIdx.x); i < kRows * C.tokens; i += C.threads) {
      const int row = i % kRows, token = i / kRows, first_warp = row / kRowsOfWarp * C.parts;
      // c[2 (row / 8) + token % 2] of lane (row % 8, token / 2)
      const int of_lane = row % 8 * 4 + token % 8 / 2, at = row % 16 / 8 * 2 + token % 2;
      float sum = 0;
      for (int w = first_warp; w < first_warp + C.parts; ++w)
        sum += shared.sums[w][row % kRowsOfWarp / 16][token / 8][of_lane][at];
      store<T>(p, first_token + token, first_row + row, sum * p.tensor_scale);
    }
  }

 private:
  // Piece j of all rows of each lane times that of the tokens, which `load` gives by tile.
  template <class T, class S, Config C, int kTiles, class Load>
  TC_DEVICE static void add(float (&sums)[C.row_tiles][kTiles][4],
                            const CodeWords (&codes)[C.row_tiles][2],
                            const Scales<S, C.groups, kHasOffsets<C>> (&scales)[C.row_tiles][2],
                            int j, int lane, Load&& load) {
    uint32_t w[C.row_tiles][2][4];  // of 4 codes of each row at a time
#pragma unroll
    for (int r = 0; r < C.row_tiles; ++r)
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const Numbers<T, S> numbers(scales[r][row].of(j, lane));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint32_t word = codes[r][row].words[j] >> 8 * half;
          w[r][half][row] = numbers.of(word);
          w[r][half][2 + row] = numbers.of(word >> 4);
        }
      }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const auto x = load(tile);
      const uint32_t first[2] = {x.words[0], x.words[1]}, second[2] = {x.words[2], x.words[3]};
      float all[4] = {};  // of these elements of a, for any row
      if constexpr (kHasOffsets<C>) {
        const uint32_t one = twice(1, T{}), ones[4] = {one, one, one, one};
        multiply(all, ones, first, T{});
        multiply(all, ones, second, T{});
      }
#pragma unroll
      for (int r = 0; r < C.row_tiles; ++r) {
        float parts[4] = {};
        auto& to = kScalesNumbers<S> ? sums[r][tile] : parts;
        multiply(to, w[r][0], first, T{});
        multiply(to, w[r][1], second, T{});
        if constexpr (!kScalesNumbers<S>)
          for (int i = 0; i < 4; ++i) {
            const Scale scale = scales[r][i / 2].of(j, lane);
            float& sum = sums[r][tile][i];
            sum = fmaf(parts[i], scale.factor, sum);
            if constexpr (kHasOffsets<C>) sum = fmaf(all[i], scale.offset, sum);
          }
      }
    }
  }
  template <class T>
  TC_DEVICE static void store(const Params& p, int64_t token, int64_t row, float sum) {
    if (token >= p.m || row >= p.n) return;
    if (p.bias) sum += float(static_cast<const T*>(p.bias)[row]);
    static_cast<T*>(p.out)[token * p.out_strides[0] + row * p.out_strides[1]] = T(sum);
  }
};

}  // namespace tensorcraft::kernel::packed_gemm
