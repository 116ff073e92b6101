// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention of a few rows, queries of heads that share one head of keys, to a part of the keys: the
// core of kernels that split the keys of few queries over many blocks. Both products run on tensor
// cores. A tile of keys is 16 for each warp:
//   scores    each warp multiplies all rows by its own 16 keys
//   weights   the warps agree on the maximum of each row and lay their weights in shared memory
//   values    each warp multiplies the weights of all keys by its own columns of the values
// So two barriers a tile, no sums to join at the end but one number a row, and rows beyond 16 cost
// products but no bytes. The scores of a tile are computed beside the weights of the one before.
// Memory answers after a microsecond, so cp.async brings the next tiles into a ring of stages. Keys
// are asked for anew as soon as their warp has multiplied them, values once all warps have.
// The order of elements in a product is free if both operands have the same. The 8 neighbours of a
// key that a lane reads are its elements of two steps of Q K^T; of a value they are its column in
// as many steps of P V, and two keys' words are interleaved to make a register of the operand.
#include "tensorcraft/device/code_words.cuh"
#include "tensorcraft/device/key_tiles.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/ptx/prmt.cuh"
#include "tensorcraft/device/query_rows.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tree_mask.h"
#include "tensorcraft/device/tile/multiply_add.cuh"

namespace tensorcraft {

// Keys: as key_tiles.cuh says.
template <class T, class Code, PartShape S, class Keys>
class AttentionPart {
 public:
  using Shared = PartShared<Code, S>;
  using Product = PartProduct<T, Code, S>;
  static constexpr int kRows = S.rows();

  // rows: how many there are. row_of(r): address of row r's query, null if there is none.
  template <class RowOf>
  TC_DEVICE AttentionPart(Shared& shared, int rows, const RowOf& row_of, const RowLengths& lengths)
      : shared_(shared),
        has_upper_(S.row_tiles > 1 || rows > 8),
        lengths_(S.is_padded ? lengths : RowLengths{S.head_dim, S.value_dim}) {
    static_assert(sizeof(Shared) <= part_shared_bytes(S, sizeof(Code)));
    static_assert(S.stages >= 2, "values arrive while others are read");
    copy_queries<T, S>(shared.query, row_of, lengths_.head_dim);
    ptx::cp_async_commit_group();
    reset();
  }

  // Forgets the keys that were added.
  TC_DEVICE void reset() {
    for (int tile = 0; tile < S.row_tiles; ++tile)
      for (int half = 0; half < 2; ++half) {
        top_[tile][half] = -kInfinity;
        sum_[tile][half] = 0;
      }
    for (auto& tile : out_)
      for (auto& block : tile)
        for (auto& column : block)
          for (float& x : column) x = 0;
  }

  // Keys [begin, end), perhaps none, of which row r sees seen(r). Which warp takes a key depends on
  // its number alone, and keys that a row does not see change nothing of it. All threads call.
  // After each tile comes added(next): all keys up to `next` are added. `tree` may hide some.
  template <class Seen, class Added, class Tree = NoTree>
  TC_DEVICE void add(const Keys& keys, int begin, int end, const Seen& seen, const Logits& logits,
                     const Added& added, const Tree& tree = {}) {
    for (int tile = 0; tile < S.row_tiles; ++tile)
      for (int half = 0; half < 2; ++half) seen_[tile][half] = seen(row(tile, half));
    begin_ = begin;
    end_ = end;
    if constexpr (kHasScale) value_scale_ = keys.value_scale;
    first_ = begin / S.keys() * S.keys();
    readable_ = 0;
    // Each copy is a group; values are asked for a tile later than keys.
#pragma unroll 1
    for (int t = 0; t < S.stages; ++t) {
      copy_keys(keys, t);
      copy_values(keys, t - 1);
    }
    if (!has_queries_) {
      ptx::cp_async_wait_group<2 * S.stages>();
      __syncthreads();
      if constexpr (kIsConverted) convert_queries<S>(shared_.query, row_scale_);
      has_queries_ = true;
    }
    Logits of_codes = logits;
    if constexpr (kHasScale) of_codes.scale *= keys.key_scale;
    Scores scores = score(keys, 0);
    find_tops(scores, 0, of_codes, tree);
    int t = 0;
#pragma unroll 1
    do {
      ptx::cp_async_wait_group<2 * S.stages - 3>();
      __syncthreads();  // the tops and the values of this tile are there, those before were read
      copy_values(keys, t + S.stages - 1);
      Scores next;
      if constexpr (kIsAhead) next = score(keys, t + 1);
      weigh(scores);
      __syncthreads();
      multiply_values(shared_.stages[t % S.stages].values);
      if constexpr (!kIsAhead) next = score(keys, t + 1);
      ++t;
      scores = next;
      find_tops(scores, t, of_codes, tree);
      added(first_ + t * S.keys());
    } while (first_ + t * S.keys() < end);
    ptx::cp_async_wait_group<0>();
    __syncthreads();
  }

  // Does the thread store the first value of its rows?
  TC_DEVICE static bool has_first_value() { return warp() == 0 && lane() % 4 == 0; }

  // Gives kGiven neighbouring values x of a row from d on, which are divided by the row's sum, to
  // store(d, x), each by one thread; row_store(r, RowSum) makes `store`. d = 0 comes once a row.
  static constexpr int kGiven = S.value_dim / S.warps < 32 ? 2 : 4;
  template <class RowStore>
  TC_DEVICE void finish(const RowStore& row_store) {
    for (int tile = 0; tile < S.row_tiles; ++tile)
      for (int half = 0; half < 2; ++half) {
        float sum = sum_[tile][half];
        sum += __shfl_xor_sync(kFullWarp, sum, 1);
        sum += __shfl_xor_sync(kFullWarp, sum, 2);
        if (lane() % 4 == 0) shared_.sum[warp()][row(tile, half)] = sum;
      }
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < S.row_tiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = 0;
        for (int w = 0; w < S.warps; ++w) sum += shared_.sum[w][row(tile, half)];
        const float factor = sum == 0 ? 0.f : value_scale() / sum;
        const auto store = row_store(row(tile, half), RowSum{top_[tile][half], sum});
#pragma unroll
        for (int y = 0; y < kBlocks; ++y)
#pragma unroll
          for (int e = 0; e < 2; ++e)
#pragma unroll
            for (int i = 0; i < kNeighbours; i += kGiven) {
              // Column n of step i of a block is value kNeighbours n + i of it.
              if (column(y, 2 * (lane() % 4) + e) + i >= lengths_.value_dim) continue;
              float x[kGiven];
              for (int n = 0; n < kGiven; ++n) x[n] = out_[tile][y][i + n][2 * half + e] * factor;
              store(column(y, 2 * (lane() % 4) + e) + i, x);
            }
      }
  }

 private:
  // A warp's columns of the values: blocks of 8 times as many neighbours as a lane reads.
  static constexpr int kColumns = S.value_dim / S.warps;
  static constexpr int kNeighbours = kColumns < 64 ? kColumns / 8 : 8;
  static constexpr int kBlocks = kColumns / (8 * kNeighbours);
  static constexpr bool kIsAhead = S.row_tiles < 4;  // else there are no registers
  static constexpr bool kHasScale = sizeof(Code) == 1 && !S.has_key_scales;
  static constexpr bool kIsConverted = !kAreSame<T, Product>;
  using Scores = PartScores<S>;

  TC_DEVICE static int lane() { return int(threadIdx.x % kWarpSize); }
  TC_DEVICE static int warp() { return int(threadIdx.x / kWarpSize); }
  TC_DEVICE static int row(int tile, int half) { return kTileRows * tile + lane() / 4 + 8 * half; }
  TC_DEVICE static int column(int block, int n) {
    return warp() * kColumns + (8 * block + n) * kNeighbours;
  }
  TC_DEVICE float value_scale() const {
    if constexpr (kHasScale) return value_scale_;
    return 1;
  }
  // The first of the warp's 16 keys of a tile.
  TC_DEVICE int step_of(int tile) const { return first_ + tile * S.keys() + warp() * kStepKeys; }

  // Looks up the warp's keys of a tile: for 32 tiles at once, a lane each.
  TC_DEVICE StepPlace look_up(const Keys& keys, int tile) {
    const int source = tile % kWarpSize;
    if (source == 0) {
      const int j = step_of(tile + lane());
      answers_ = {kUnreadable, 0};
      if (j < end_ && j + kStepKeys > begin_) answers_ = keys.look_up(j);
    }
    StepPlace place{__shfl_sync(kFullWarp, answers_.keys, source),
                    __shfl_sync(kFullWarp, answers_.values, source)};
    if constexpr (S.has_key_scales) {
      if (keys.key_scales) place.key_scales = __shfl_sync(kFullWarp, answers_.key_scales, source);
      if (keys.value_scales)
        place.value_scales = __shfl_sync(kFullWarp, answers_.value_scales, source);
    }
    return place;
  }

  // Starts the copies of the warp's keys, and a tile later of its values. Rows that are no keys of
  // the call become 0: a weight of 0 must not meet a NaN.
  TC_DEVICE void copy_keys(const Keys& keys, int tile) {
    const StepPlace place = look_up(keys, tile);
    const bool is_readable = place.keys != kUnreadable;
    const uint32_t bit = 1u << tile % S.stages;
    readable_ = is_readable ? readable_ | bit : readable_ & ~bit;
    of_values_ = of_keys_;
    of_keys_ = is_readable ? place.values : kUnreadable;
    if (is_readable) {
      PartStage<Code, S>& stage = shared_.stages[tile % S.stages];
      const StepKeys step{warp() * kStepKeys, step_of(tile), {begin_, end_}};
      copy_rows(stage.keys, step, keys.keys + place.keys, keys.key_row, &stage.keys.key_pattern,
                lengths_.head_dim);
      if constexpr (S.has_key_scales) {
        if (keys.key_scales)
          copy_numbers(stage.scales, step, keys.key_scales + place.key_scales, keys.key_scale_row);
        if (keys.value_scales)
          copy_numbers(stage.scales + S.keys(), step, keys.value_scales + place.value_scales,
                       keys.value_scale_row);
      }
    }
    ptx::cp_async_commit_group();
  }
  TC_DEVICE void copy_values(const Keys& keys, int tile) {
    if (tile == 0 || (tile > 0 && first_ + tile * S.keys() < end_)) {
      auto& values = shared_.stages[tile % S.stages].values;
      const bool is_readable = of_values_ != kUnreadable;  // else none is a key
      const StepKeys step{warp() * kStepKeys, is_readable ? step_of(tile) : end_, {begin_, end_}};
      copy_rows(values, step, keys.values + (is_readable ? of_values_ : 0), keys.value_row,
                &values.value_pattern, lengths_.value_dim);
    }
    ptx::cp_async_commit_group();
  }

  // The scores of the warp's keys of a tile, whose place in the ring is for the next ones then.
  TC_DEVICE Scores score(const Keys& keys, int tile) {
    const PartStage<Code, S>& stage = shared_.stages[tile % S.stages];
    Scores scores{};
    scores.are_readable = readable_ >> tile % S.stages & 1;
    ptx::cp_async_wait_group<2 * S.stages - 1>();
    __syncwarp();
    if (scores.are_readable) {
      multiply_keys(scores, stage.keys);
      if constexpr (S.has_key_scales) take_scales(scores, keys, stage);
    }
    __syncwarp();
    copy_keys(keys, tile + S.stages);
    return scores;
  }

  // Key 8 n + lane / 4 of the warp's is a column of B of product n.
  TC_DEVICE void multiply_keys(Scores& scores,
                               const KeyTile<Code, S.keys(), S.head_dim>& keys) const {
    const int first = warp() * kStepKeys + lane() / 4, pattern = keys.key_pattern(lane() / 4);
#pragma unroll 8
    for (int x = 0; x < S.head_dim / 32; ++x) {
      Vec4<uint32_t> words[2];
      for (int n = 0; n < 2; ++n)
        words[n] = load_words<Product, 8>(keys.at(first + 8 * n, 32 * x + lane() % 4 * 8, pattern));
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int tile = 0; tile < S.row_tiles; ++tile) {
          const Vec4<uint32_t> q = shared_.query[tile][2 * x + s][lane()];
          const uint32_t a[4] = {q[0], q[1], q[2], q[3]};
          for (int n = 0; n < 2; ++n)
            multiply_add<Product>(scores.of[tile][n], a, {words[n][2 * s], words[n][2 * s + 1]});
        }
    }
  }

  // Scores become logits, and the largest of each row goes to the other warps.
  template <class Tree>
  TC_DEVICE void find_tops(Scores& scores, int of_tile, const Logits& logits, const Tree& tree) {
    const bool is_readable = scores.are_readable;
    const int j = step_of(of_tile), first = j + 2 * (lane() % 4);
#pragma unroll
    for (int tile = 0; tile < S.row_tiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (half == 1 && !has_upper_) break;
        const KeyRange& seen = seen_[tile][half];
        const bool sees_all = is_readable && seen.begin <= j && j + kStepKeys <= seen.end &&
                              j + kStepKeys <= tree.newest();
        float top = -kInfinity;
        for (int n = 0; n < 2; ++n)
          for (int e = 0; e < 2; ++e) {
            float& s = scores.of[tile][n][2 * half + e];
            if constexpr (kIsConverted) s *= row_scale_[tile][half];
            if constexpr (S.has_softcap)
              s = SoftCap(logits.scale, logits.softcap)(s);
            else
              s *= logits.scale;
          }
        if (!warp_all(sees_all)) {
          const auto of_row = tree.row(row(tile, half));
          for (int n = 0; n < 2; ++n)
            for (int e = 0; e < 2; ++e) {
              const int key = first + 8 * n + e;
              if (!is_readable || key < seen.begin || key >= seen.end || !of_row.sees(key))
                scores.of[tile][n][2 * half + e] = -kInfinity;
            }
        }
        for (int n = 0; n < 2; ++n)
          for (int e = 0; e < 2; ++e) top = fmaxf(top, scores.of[tile][n][2 * half + e]);
        top = fmaxf(top, __shfl_xor_sync(kFullWarp, top, 1));
        top = fmaxf(top, __shfl_xor_sync(kFullWarp, top, 2));
        if (lane() % 4 == 0) shared_.top[row(tile, half)][warp()] = top;
      }
  }

  // Logits become weights, of the values' scale, and what was summed under the old maximum is
  // scaled.
  TC_DEVICE void weigh(const Scores& scores) {
#pragma unroll
    for (int tile = 0; tile < S.row_tiles; ++tile) {
      Vec4<uint32_t> words{};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (half == 1 && !has_upper_) break;
        float top = top_[tile][half];
        const auto tops = load_vector<S.warps>(shared_.top[row(tile, half)]);
        for (int w = 0; w < S.warps; ++w) top = fmaxf(top, tops[w]);
        const float keep = weight_of(top_[tile][half], top);
        top_[tile][half] = top;
        float sum = sum_[tile][half] * keep;
        for (int n = 0; n < 2; ++n) {
          float weight[2];
          for (int e = 0; e < 2; ++e) {
            weight[e] = weight_of(scores.of[tile][n][2 * half + e], top);
            sum += weight[e];
            if constexpr (S.has_key_scales) weight[e] *= scores.of_value[n][e];
          }
          words[2 * n + half] = pack_pair(weight[0], weight[1], Product{});
        }
        sum_[tile][half] = sum;
        if (warp_all(keep == 1.f)) continue;  // most tiles find no larger score
        for (auto& block : out_[tile])
          for (auto& column : block) {
            column[2 * half] *= keep;
            column[2 * half + 1] *= keep;
          }
      }
      shared_.weights[tile][warp()][lane()] = words;
    }
  }

  TC_DEVICE void multiply_values(const KeyTile<Code, S.keys(), S.value_dim>& values) {
    const int row = 2 * (lane() % 4), pattern = values.value_pattern(row);
#pragma unroll
    for (int w = 0; w < S.warps; ++w) {
      uint32_t a[S.row_tiles][4];
      for (int tile = 0; tile < S.row_tiles; ++tile) {
        const Vec4<uint32_t> words = shared_.weights[tile][w][lane()];
        for (int e = 0; e < 4; ++e) a[tile][e] = words[e];
      }
#pragma unroll
      for (int y = 0; y < kBlocks; ++y) {
        AlignedVector<uint32_t, kNeighbours / 2> words[2][2];
#pragma unroll
        for (int k = 0; k < 4; ++k)
          words[k / 2][k % 2] = load_words<Product, kNeighbours>(
              values.at(w * kStepKeys + row + k / 2 * 8 + k % 2, column(y, lane() / 4), pattern));
#pragma unroll
        for (int i = 0; i < kNeighbours; ++i) {
          uint32_t b[2];
          for (int k = 0; k < 2; ++k) {
            const uint32_t low = words[k][0][i / 2], high = words[k][1][i / 2];
            b[k] = ptx::prmt_b32(low, high, i % 2 ? 0x7632 : 0x5410);
          }
#pragma unroll
          for (int tile = 0; tile < S.row_tiles; ++tile)
            multiply_add<Product>(out_[tile][y][i], a[tile], b);
        }
      }
    }
  }

  Shared& shared_;
  const bool has_upper_;  // rows 8 on
  const RowLengths lengths_;
  bool has_queries_ = false;
  int begin_ = 0, end_ = 0, first_ = 0;  // of the call of add(); first_: of its first tile
  StepPlace answers_{kUnreadable, 0};    // of look_up(), of tile t in lane t % 32
  // Where the values of the tile begin whose keys, or whose values, are copied.
  int64_t of_keys_ = kUnreadable, of_values_ = kUnreadable;
  uint32_t readable_ = 0;  // a bit a stage
  KeyRange seen_[S.row_tiles][2];
  float row_scale_[S.row_tiles][2];  // of converted queries
  float value_scale_ = 1;
  float top_[S.row_tiles][2], sum_[S.row_tiles][2];
  float out_[S.row_tiles][kBlocks][kNeighbours][4];
};

}  // namespace tensorcraft
