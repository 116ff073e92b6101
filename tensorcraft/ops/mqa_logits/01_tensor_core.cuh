// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block keeps all heads of some queries in shared memory and streams keys: a warp holds 32 of
// them in registers, the rows of mma's A, and multiplies them with the heads of one query after
// another, 8 heads an instruction. So a key comes from memory once for all heads of those queries,
// and from registers once for 8 heads. relu, weight and sum over heads need no other thread but
// the four that share a key, and a logit is the only thing that is written. Logits that no query
// sees are filled on the way.
//
// The order of elements inside a product is free if both operands have the same: a lane reads 8
// neighbours in one access, its elements of two instructions. Codes of 8 bits become float16, which
// holds them all. Needs 16-byte accesses of keys and heads, 8-byte ones of codes.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/code_words.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/multiply_add.cuh"
#include "tensorcraft/ops/mqa_logits/keys.cuh"

namespace tensorcraft::kernel::mqa_logits {

// Queries in shared memory: their heads in the order in which lanes read them, weights and ranges.
struct Rows {
  const Vec4<uint32_t>* heads;
  const float* weights;
  const KeyRange* ranges;
  int count, words;  // words of a query

  template <class F>
  TC_DEVICE bool any(const F& f) const {
    bool is = false;
#pragma unroll 1
    for (int i = 0; i < count; ++i) is |= f(ranges[i]);
    return is;
  }
};

template <class T, Config C>
class KeyTile {
 public:
  using Operand = Select<sizeof(T) == 1, f16, T>;
  using Words = Vec4<uint32_t>;
  static constexpr int kEights = keys_of_warp(C.spans) / 8;  // a lane has a key of each

  // Keys of request b from `first` on; those that no row sees are not read.
  TC_DEVICE void load(const Params& p, int64_t b, int first, const Rows& rows) {
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      const int j = first + 8 * n + lane() / 4;
      const KeyPlace place = place_of(p, b, j < p.keys ? j : p.keys - 1);
      const bool is_read = rows.any([&](const KeyRange& seen) { return meets(seen, j, j + 1); }) &&
                           is_there(p, place);
      const T* const k =
          static_cast<const T*>(p.k) + (is_read ? offset(p.k_strides, place) : int64_t(0));
#pragma unroll
      for (int s = 0; s < C.spans; ++s) {
        const int d = element(s);
        words_[n][s] = is_read && d < p.head_dim ? load_words<Operand>(k + d) : Words{};
      }
      if (n == lane() % 4) {
        is_there_ = is_read;
        scale_ = is_read ? scale_of(p, place) : 0.f;
      }
    }
  }

  // The logit of the lane's own key, first + own(), for the query whose heads and weights these
  // are.
  TC_DEVICE float logit(const Words* heads, const float* weights, int num_heads) const {
    float sum[kEights] = {};
#pragma unroll 2
    for (int h = 0; h < num_heads; h += 8, heads += C.spans * kWarpSize) {
      float dot[kEights / 2][4] = {};
#pragma unroll
      for (int s = 0; s < C.spans; ++s) {
        const Words q = heads[s * kWarpSize + lane()];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int m = 0; m < kEights / 2; ++m) {
            const Words &low = words_[2 * m][s], &high = words_[2 * m + 1][s];
            multiply_add<Operand>(
                dot[m], {low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]},
                {q[2 * half], q[2 * half + 1]});
          }
      }
      const int head = h + lane() % 4 * 2;
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (head + e < num_heads)
#pragma unroll
          for (int n = 0; n < kEights; ++n)
            sum[n] = fmaf(weights[head + e], relu(dot[n / 2][n % 2 * 2 + e]), sum[n]);
    }
    const float all = own_sum(sum);  // by all lanes
    return is_there_ ? all * scale_ : -kInfinity;
  }

  TC_DEVICE static int own() { return 8 * (lane() % 4) + lane() / 4; }
  TC_DEVICE static bool has_own() { return lane() % 4 < kEights; }
  TC_DEVICE static int lane() { return int(threadIdx.x % kWarpSize); }
  // Where the 8 elements of a lane begin in span s.
  TC_DEVICE static int element(int s) { return 32 * s + 8 * (lane() % 4); }

 private:
  // The four lanes of a row of mma's have parts of the sums of kEights keys; lane t gets the sum of
  // key t, in an order that is the same for all.
  TC_DEVICE static float own_sum(const float (&sum)[kEights]) {
    const bool odd = lane() % 2 != 0, upper = lane() % 4 >= 2;
    float pair[kEights / 2];
#pragma unroll
    for (int m = 0; m < kEights / 2; ++m)
      pair[m] = (odd ? sum[2 * m + 1] : sum[2 * m]) +
                __shfl_xor_sync(kFullWarp, odd ? sum[2 * m] : sum[2 * m + 1], 1);
    if constexpr (kEights == 2)
      return pair[0] + __shfl_xor_sync(kFullWarp, pair[0], 2);
    else
      return (upper ? pair[1] : pair[0]) + __shfl_xor_sync(kFullWarp, upper ? pair[0] : pair[1], 2);
  }

  Words words_[kEights][C.spans];
  float scale_ = 0;        // of the lane's own key
  bool is_there_ = false;  // that key, and some query may see it
};

struct TensorCore {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    using Tile = KeyTile<T, C>;
    constexpr int kKeys = keys_of_warp(C.spans), kWarps = C.threads / kWarpSize;
    const int64_t tiles = int64_t(p.batch) * p.row_tiles, b = blockIdx.x % tiles / p.row_tiles;
    const int first_row = int(blockIdx.x % p.row_tiles) * p.rows_of_block;
    const Rows rows = stage<T, C>(p, b, first_row);
    const int64_t begin = blockIdx.x / tiles * p.keys_of_block;
    const int end = int(begin + p.keys_of_block < p.keys ? begin + p.keys_of_block : p.keys);
    Tile tile;
    for (int first = int(begin) + int(threadIdx.x / kWarpSize) * kKeys; first < end;
         first += kWarps * kKeys) {
      const int own = first + Tile::own();
      if (rows.any([&](const KeyRange& seen) { return meets(seen, first, first + kKeys); }))
        tile.load(p, b, first, rows);
#pragma unroll 1
      for (int i = 0; i < rows.count; ++i) {
        float logit = -kInfinity;
        if (meets(rows.ranges[i], first, first + kKeys))
          logit = tile.logit(rows.heads + i * rows.words, rows.weights + i * p.heads, p.heads);
        if (!meets(rows.ranges[i], own, own + 1)) logit = -kInfinity;
        if (Tile::has_own() && own < end)
          p.out[offset(p.out_strides, b, first_row + i) + own * p.out_strides.step] = logit;
      }
    }
  }

 private:
  // The queries of the block, from first_row on, in shared memory.
  template <class T, Config C>
  TC_DEVICE static Rows stage(const Params& p, int64_t b, int first_row) {
    const int words = int(words_of_query(p.heads, C.spans));
    auto* const heads = &dynamic_shared<Vec4<uint32_t>>();
    auto* const weights = reinterpret_cast<float*>(heads + p.rows_of_block * words);
    auto* const ranges = reinterpret_cast<KeyRange*>(weights + p.rows_of_block * p.heads);
    const int left = p.queries - first_row, count = left < p.rows_of_block ? left : p.rows_of_block;
#pragma unroll 1
    for (int i = int(threadIdx.x); i < count * words; i += C.threads)
      heads[i] = head_words<T, C>(p, b, first_row + i / words, i % words);
    for (int i = int(threadIdx.x); i < count * p.heads; i += C.threads)
      weights[i] = p.weights[offset(p.weights_strides, b, first_row + i / p.heads) +
                             i % p.heads * p.weights_strides.head];
    for (int i = int(threadIdx.x); i < count; i += C.threads) {
      // Two statements: gcc's race build does not see a call store its result.
      const KeyRange seen = checked_keys_of(p, b, first_row + i);
      ranges[i] = seen;
    }
    __syncthreads();
    return {heads, weights, ranges, count, words};
  }

  // Word i of a query, the 8 elements that a lane multiplies of a span, of 8 heads. A head or
  // elements that are not there are 0.
  template <class T, Config C>
  TC_DEVICE static Vec4<uint32_t> head_words(const Params& p, int64_t b, int row, int i) {
    const int lane = i % kWarpSize, span = i / kWarpSize % C.spans;
    const int head = i / (kWarpSize * C.spans) * 8 + lane / 4, d = 32 * span + 8 * (lane % 4);
    if (head >= p.heads || d >= p.head_dim) return {};
    return load_words<typename KeyTile<T, C>::Operand>(
        static_cast<const T*>(p.q) + offset(p.q_strides, b, row) + head * p.q_strides.head + d);
  }
};

}  // namespace tensorcraft::kernel::mqa_logits
