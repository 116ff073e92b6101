// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of up to 16 rows, queries of heads that share one head of keys, to a part of the keys:
// the core of kernels that split the keys of few queries over many blocks. Both products run on
// tensor cores with keys and values straight from memory in registers: each warp takes 16 keys at a
// time for itself, with an online softmax of its own, so there is no barrier until the end.
//
// The order of elements inside a product is free as long as both operands have the same. A lane
// reads 8 neighbours of a key in one access; those are its elements of two steps of Q K^T. Of a
// value it reads 8 neighbours too, which are its column in 8 steps of P V; two keys' words are
// interleaved to make a register of the operand.
#include "tensorcraft/device/code_words.cuh"
#include "tensorcraft/device/key_range.h"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/multiply_add.cuh"

namespace tensorcraft {

inline constexpr int kPartRows = 16;  // of a block
inline constexpr int kStepKeys = 16;  // of a warp at a time

// What a kernel is compiled for.
struct PartShape {
  int warps;
  int head_dim;   // a multiple of 32
  int value_dim;  // of this block, a multiple of 64
  bool has_softcap;
};

template <PartShape S>
struct PartShared {
  Vec4<uint32_t> query[S.head_dim / 16][kWarpSize];  // as the lanes' registers of mma's A
  float top[S.warps][kPartRows], sum[S.warps][kPartRows];
  float out[kPartRows][S.value_dim + 4];  // lanes of neighbouring rows are in different banks
};

// How a score becomes a logit.
struct Logits {
  float scale, softcap;
};

// Keys: how a key is found, by its number j in the request, a page table or a stride.
//   bool find(int j)                    the 16 keys from j on, j a multiple of 16; false:
//   unreadable const Code* key(int j) const        8 of its elements are one access; so is value(j)
//   bool has_scales() const, float key_scale(int j) const, float value_scale(int j) const
template <class T, class Code, PartShape S, class Keys>
class AttentionPart {
 public:
  using Shared = PartShared<S>;
  static constexpr int kBlocks = S.value_dim / 64;  // of 64 values

  // rows: of the block, at most 16. row_of(r): address of row r's query, null if there is none.
  template <class RowOf>
  TC_DEVICE AttentionPart(PartShared<S>& shared, int rows, const RowOf& row_of)
      : shared_(shared), has_upper_(rows > 8) {
    const T* const query[2] = {row_of(lane() / 4), row_of(lane() / 4 + 8)};
    for (int step = warp(); step < S.head_dim / 16; step += S.warps) {
      const int at = 32 * (step / 2) + 8 * (lane() % 4) + 4 * (step % 2);
      Vec4<uint32_t> words{};
      for (int half = 0; half < 2; ++half)
        if (query[half]) {
          const auto pair = load_vector<2>(reinterpret_cast<const uint32_t*>(query[half] + at));
          words[half] = pair[0];
          words[2 + half] = pair[1];
        }
      shared.query[step][lane()] = words;
    }
    for (int half = 0; half < 2; ++half) {
      top_[half] = -kInfinity;
      sum_[half] = 0;
    }
    for (auto& block : out_)
      for (auto& column : block)
        for (float& x : column) x = 0;
    __syncthreads();
  }

  // Keys [begin, end), of which row r sees seen(r). Which warp takes a key depends on its number
  // alone, and keys that a row does not see change nothing of it: its bits do not depend on the
  // other rows.
  template <class Seen>
  TC_DEVICE void add(Keys keys, int begin, int end, const Seen& seen, const Logits& logits) {
    for (int half = 0; half < 2; ++half) seen_[half] = seen(lane() / 4 + 8 * half);
    const int first = begin / kStepKeys, own = (warp() + S.warps - first % S.warps) % S.warps;
#pragma unroll 1
    for (int j = (first + own) * kStepKeys; j < end; j += S.warps * kStepKeys) {
      if (!keys.find(j)) continue;
      float score[2][4] = {};
      multiply_keys(score, keys, j);
      weigh(score, keys, j, logits);
      multiply_values(score, keys, j, begin, end);
    }
  }

  // Adds up the warps, in their order, and gives f(r, d, out, lse) of 4 neighbouring values from d
  // on, which are divided by the row's sum, each by one thread; d = 0 comes once a row.
  template <class F>
  TC_DEVICE void finish(const F& f) {
    for (int half = 0; half < 2; ++half) {
      sum_[half] += __shfl_xor_sync(kFullWarp, sum_[half], 1);
      sum_[half] += __shfl_xor_sync(kFullWarp, sum_[half], 2);
      const int row = lane() / 4 + 8 * half;
      if (lane() % 4 == 0) {
        shared_.top[warp()][row] = top_[half];
        shared_.sum[warp()][row] = sum_[half];
      }
    }
    __syncthreads();
    float share[2];
    for (int half = 0; half < 2; ++half) {
      const Total t = total(lane() / 4 + 8 * half);
      share[half] = t.sum == 0 ? 0.f : weight_of(top_[half], t.top) / t.sum;
    }
#pragma unroll 1
    for (int turn = 0; turn < S.warps; ++turn) {
      if (warp() == turn) add_to_shared(share, turn == 0);
      __syncthreads();
    }
    for (int i = int(threadIdx.x); i < kPartRows * S.value_dim / 4; i += S.warps * kWarpSize) {
      const int row = i / (S.value_dim / 4), d = i % (S.value_dim / 4) * 4;
      const Total t = total(row);
      f(row, d, load_vector<4>(&shared_.out[row][d]),
        t.sum == 0 ? -kInfinity : t.top + logf(t.sum));
    }
  }

 private:
  struct Total {
    float top, sum;
  };
  TC_DEVICE static int lane() { return int(threadIdx.x % kWarpSize); }
  TC_DEVICE static int warp() { return int(threadIdx.x / kWarpSize); }
  // A maximum of -inf saw nothing; -inf - (-inf) would be NaN.
  TC_DEVICE static float weight_of(float x, float top) {
    return exp2_fast((x - (top == -kInfinity ? 0.f : top)) * kLog2E);
  }

  TC_DEVICE Total total(int row) const {
    Total t{-kInfinity, 0};
    for (int w = 0; w < S.warps; ++w) t.top = fmaxf(t.top, shared_.top[w][row]);
    for (int w = 0; w < S.warps; ++w)
      t.sum += shared_.sum[w][row] * weight_of(shared_.top[w][row], t.top);
    return t;
  }

  // Key 8 n + lane / 4 is a column of B of tile n.
  TC_DEVICE void multiply_keys(float (&score)[2][4], const Keys& keys, int j) const {
    const Code* const from[2] = {keys.key(j + lane() / 4) + lane() % 4 * 8,
                                 keys.key(j + 8 + lane() / 4) + lane() % 4 * 8};
    constexpr int kAll = S.head_dim / 32;
    constexpr int kAtOnce = kAll % 4 == 0 ? 4 : kAll % 3 == 0 ? 3 : kAll % 2 == 0 ? 2 : 1;
    static_assert(kAll % kAtOnce == 0);
#pragma unroll 1
    for (int first = 0; first < kAll; first += kAtOnce) {
      Vec4<uint32_t> words[2][kAtOnce];
#pragma unroll
      for (int x = 0; x < kAtOnce; ++x)
        for (int n = 0; n < 2; ++n) words[n][x] = load_words<T>(from[n] + (first + x) * 32);
#pragma unroll
      for (int x = 0; x < kAtOnce; ++x)
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          const Vec4<uint32_t> q = shared_.query[2 * (first + x) + s][lane()];
          const uint32_t a[4] = {q[0], q[1], q[2], q[3]};
          for (int n = 0; n < 2; ++n)
            multiply_add<T>(score[n], a, {words[n][x][2 * s], words[n][x][2 * s + 1]});
        }
    }
  }

  // Scores become weights, of the values' scale, and what was summed under the old maximum is
  // scaled. Lane t holds keys 2 (t % 4) and the next of either tile, of rows t / 4 and t / 4 + 8.
  TC_DEVICE void weigh(float (&score)[2][4], const Keys& keys, int j, const Logits& logits) {
    const int first = j + 2 * (lane() % 4);
    float of_value[2][2] = {{1, 1}, {1, 1}};
    if (keys.has_scales())
      for (int n = 0; n < 2; ++n)
        for (int e = 0; e < 2; ++e) {
          const float of_key = keys.key_scale(first + 8 * n + e);
          score[n][e] *= of_key;
          score[n][2 + e] *= of_key;
          of_value[n][e] = keys.value_scale(first + 8 * n + e);
        }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !has_upper_) break;
      // Does a row not see all keys of the step?
      const bool hides = !warp_all(seen_[half].begin <= j && j + kStepKeys <= seen_[half].end);
      float next = top_[half];
      for (int n = 0; n < 2; ++n)
        for (int e = 0; e < 2; ++e) {
          float& s = score[n][2 * half + e];
          const int key = first + 8 * n + e;
          if constexpr (S.has_softcap)
            s = SoftCap(logits.scale, logits.softcap)(s);
          else
            s *= logits.scale;
          if (hides && (key < seen_[half].begin || key >= seen_[half].end)) s = -kInfinity;
          next = fmaxf(next, s);
        }
      next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, 1));
      next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, 2));
      const float keep = weight_of(top_[half], next);
      top_[half] = next;
      sum_[half] *= keep;
      for (int n = 0; n < 2; ++n)
        for (int e = 0; e < 2; ++e) {
          float& s = score[n][2 * half + e];
          s = weight_of(s, next);
          sum_[half] += s;
          s *= of_value[n][e];
        }
      if (warp_all(keep == 1.f)) continue;  // most steps find no larger score
      for (auto& block : out_)
        for (auto& column : block) {
          column[2 * half] *= keep;
          column[2 * half + 1] *= keep;
        }
    }
  }

  // Values of keys that no row sees become 0: a weight of 0 must not meet a NaN.
  TC_DEVICE void multiply_values(const float (&weight)[2][4], const Keys& keys, int j, int begin,
                                 int end) {
    uint32_t a[4];
    for (int e = 0; e < 4; ++e)
      a[e] = pack_pair(weight[e / 2][e % 2 * 2], weight[e / 2][e % 2 * 2 + 1], T{});
    const int first = j + 2 * (lane() % 4);
#pragma unroll
    for (int y = 0; y < kBlocks; ++y) {
      Vec4<uint32_t> words[2][2];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int key = first + k / 2 * 8 + k % 2;
        Vec4<uint32_t>& to = words[k / 2][k % 2];
        if (key >= begin && key < end)
          to = load_words<T>(keys.value(key) + 64 * y + lane() / 4 * 8);
        else
          to = {};
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        uint32_t b[2];
        for (int k = 0; k < 2; ++k) {
          const uint32_t low = words[k][0][i / 2], high = words[k][1][i / 2];
          b[k] = i % 2 ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16;
        }
        multiply_add<T>(out_[y][i], a, b);
      }
    }
  }

  // Column n of tile i of a block is value 8 n + i of it: 8 neighbours of a row for each e.
  TC_DEVICE void add_to_shared(const float (&share)[2], bool is_first) {
#pragma unroll
    for (int y = 0; y < kBlocks; ++y)
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int four = 0; four < 2; ++four) {
          float* const at =
              &shared_
                   .out[lane() / 4 + e / 2 * 8][64 * y + 8 * (lane() % 4 * 2 + e % 2) + 4 * four];
          Vec4<float> x = is_first ? Vec4<float>{} : load_vector<4>(at);
          // A warp that saw nothing has no share, whatever lies in its sums.
          if (share[e / 2] != 0)
            for (int i = 0; i < 4; ++i) x[i] += out_[y][4 * four + i][e] * share[e / 2];
          store_vector(at, x);
        }
  }

  PartShared<S>& shared_;
  bool has_upper_;  // rows 8 on
  KeyRange seen_[2];
  float top_[2], sum_[2];
  float out_[kBlocks][8][4];
};

}  // namespace tensorcraft
