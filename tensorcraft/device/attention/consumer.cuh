// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/row_unit.cuh"
#include "tensorcraft/device/attention/consumer_rows.cuh"
#include "tensorcraft/device/attention/hidden_keys.cuh"
#include "tensorcraft/device/attention/part_sums.cuh"

namespace tensorcraft::kernel::attention_tiles {

// A warpgroup that multiplies: 64 rows of a block, queries of a head or of packed ones. If values
// are keys it makes the weights of the block's rows, which ColumnConsumers multiply by values.
template <class T, Config C>
struct Consumer : ConsumerRows<T, C> {
  using Rows = ConsumerRows<T, C>;
  using Rows::ring, Rows::p, Rows::group, Rows::release, Rows::meet;
  StageCursor<C.stages> keys, values;  // bit 1 of keys.parity is that of the queries
  WarpgroupSums<kGroupRows, C.block_n> score;
  WeightedSums<T, C> out;
  float top[2], sum[2];  // per row: running maximum (unscaled) and sum of weights
  // float8: scores are multiplied by it before exp2. Scaled keys of 16 bits: scores are multiplied
  // by it; below 0, scale_scores() has multiplied them, as their largest need not have been that
  // before. kByRow: one for each row, before open() what its queries were divided by.
  float factor[C.scaled == kByRow ? 2 : 1];
  int newest;  // with a tree: the first key that it speaks of
  PartSums<C> parts;
  static_assert(C.block_m == (values_are_keys(C) ? 1 : C.consumers) * kGroupRows);
  static_assert(sizeof(Ring<T, C>) == ring_shared_bytes(C) && sizeof(Work<C>) <= kWorkBytes);

  TC_DEVICE Consumer(Ring<T, C>& memory, const HopperParams& params, int number)
      : Rows{memory, params, number} {}

  // Before the first tile of keys of the next work: its number, or kNoWork.
  TC_DEVICE int begin() {
    top[0] = top[1] = -kInfinity;
    sum[0] = sum[1] = 0.f;
    factor[0] = 0.f;
    out.clear();
    ptx::mbarrier_wait_parity(&ring.q_full, keys.parity >> 1);
    keys.parity ^= 2;  // a register of its own is one too many for float8
    const int number = __shfl_sync(kFullWarp, ring.work.number, 0);
    if constexpr (C.scaled == kByRow)
      if (number != kNoWork) convert_queries();
    return number;
  }
  // The next tile of keys has come.
  TC_DEVICE void wait_for_keys() const {
    ptx::mbarrier_wait_parity(&ring.keys.full[keys.stage], keys.parity & 1);
  }
  // Starts score = Q K^T of it.
  TC_DEVICE void multiply_keys() {
    if constexpr (values_are_keys(C)) {
      multiply_columns<dim_of_values(C) / 2, C.head_dim>(false);
      ptx::mbarrier_wait_parity(&ring.v.front_full[keys.stage], keys.parity & 1);
      multiply_columns<0, dim_of_values(C) / 2>(true);
    } else {
      score.template add_tiles<T, C.head_dim, true, true>(ring.q[0], first_row(),
                                                          ring.k[keys.stage], false);
    }
  }
  // They are there, and perhaps the last kPending groups of products are not.
  template <int kPending>
  TC_DEVICE void land_scores() {
    score.template land<kPending>();
    release(&ring.keys.empty[keys.stage]);
    keys.advance();
  }
  // Starts out += weights V of the next tile of values; if it does not add, out = weights V.
  TC_DEVICE void multiply_values(bool adds = true) {
    ptx::mbarrier_wait_parity(&ring.values.full[values.stage], values.parity);
    out.multiply(ring.values_of(values.stage), adds);
  }
  // No product is under way then. `was_multiplied`: one was.
  TC_DEVICE void land_out(bool was_multiplied = true) {
    out.land(ring.values_of(values.stage), was_multiplied);
    if (!was_multiplied) return;
    release(&ring.values.empty[values.stage]);
    values.advance();
  }
  // Before the first tile of values of some work.
  TC_DEVICE void open(const Work<C>& w) {
    if constexpr (C.parts > 0) parts.begin(ring, p, w);
    if constexpr (C.has_tree)
      newest = w.at - w.first + (p.q_starts ? start_of_span(p, w.request + 1) : 0);
    if constexpr (sizeof(T) == 1) {
      const float scale = scale_of(p.q_scale, w.head) * scale_of(p.k_scale, w.head / p.group);
      // Else the largest score would not be that of the largest product.
      factor[0] = scale > 0 ? p.scale * kLog2E * scale : kNan;
    } else {
      if constexpr (C.scaled && C.options < kSoftcap) take_scale(score_scale(w));
      clear_hidden(w);
    }
  }

  // Hides the keys that a row does not see in a tile that has some. Scores become logits before.
  TC_DEVICE void mask(const Work<C>& w, int tile) {
    const int first = first_row(), key = tile * C.block_n;
    if constexpr (C.options >= kSoftcap) make_logits(w, key);
    if constexpr (C.scaled && C.options < kSoftcap)
      if (factor[0] < 0) scale_scores(score_scale(w));
    if (w.seen(query_of(first)).end < key + C.block_n) hide<false>(w, key);
    if constexpr (C.options >= kRanges)
      if (w.seen(query_of(first + kGroupRows - 1)).begin > key) hide<true>(w, key);
    if constexpr (C.has_tree)
      if (newest < key + C.block_n) hide_by_tree(w, key);
  }

  // Turns scores into weights, in their place; what was summed under the old maximum is to be
  // multiplied by `keep`.
  TC_DEVICE void weigh(float (&keep)[2]) {
    float(&s)[C.block_n / 2] = score.at[0][0];
    float base[2], shift[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float factor = exp2_factor(half);
      float next = top[half];
#pragma unroll
      for (int c = 2 * half; c < C.block_n / 2; c += 4) next = fmaxf(next, fmaxf(s[c], s[c + 1]));
      next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, 1));
      next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, 2));
      base[half] = next == -kInfinity ? 0.f : next;  // nothing visible yet
      keep[half] = exp2_fast((top[half] - base[half]) * factor);
      shift[half] = base[half] * factor;
      top[half] = next;
    }
    if (fmaxf(fabsf(shift[0]), fabsf(shift[1])) > kLargestFusedShift) {
#pragma unroll
      for (int c = 0; c < C.block_n / 2; ++c) s[c] -= base[c / 2 % 2];
      shift[0] = shift[1] = 0.f;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float part[2] = {0.f, 0.f};
      const float factor = exp2_factor(half);
      const float exponent = kLog2OfLargest > 0 ? kLog2OfLargest - shift[half] : -shift[half];
#pragma unroll
      for (int c = 2 * half; c < C.block_n / 2; c += 4) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          s[c + e] = exp2_fast(fmaf(s[c + e], factor, exponent));
          part[e] += s[c + e];
        }
      }
      sum[half] = fmaf(sum[half], keep[half], part[0] + part[1]);
    }
  }
  TC_DEVICE void rescale(const float (&keep)[2]) { out.rescale(keep); }

  // The tile is the last one of a part, and another one is behind it. The rows of that end before
  // the tile is weighed, its values once they are there; those of the tile are not added to them.
  TC_DEVICE bool begins_part(int tile) {
    if constexpr (C.parts > 0) return parts.begins_part(tile);
    return false;
  }
  TC_DEVICE void end_rows(const Work<C>& w, bool ends_work = false) {
    if constexpr (C.parts > 0) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const RowSum of_part{top[half], row_total(half)};
        if constexpr (C.parts == kWritten) this->store_sum(w, parts.part, half, of_part);
        if constexpr (C.parts == kFolded) parts.end_row(half, of_part, exp2_factor(half));
        top[half] = -kInfinity;
        sum[half] = 0.f;
      }
      if constexpr (C.parts == kWritten && values_are_keys(C)) --parts.part;
      if constexpr (C.parts == kFolded && values_are_keys(C))
        this->share(ring.v.factors[ends_work], parts.factors);
    }
  }
  TC_DEVICE void end_values(const Work<C>& w) {
    if constexpr (C.parts == kWritten) this->store_values(w, parts.part--, out);
    if constexpr (C.parts == kFolded) parts.add_sums(out);
  }
  // After the last tile.
  TC_DEVICE void end_parts(const Work<C>& w) {
    end_rows(w, true);
    if constexpr (C.parts == kFolded) {
      if constexpr (!values_are_keys(C))
        parts.add_sums(out, [&](int c, float x) { out.set(c, x); });
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        top[half] = parts.rows[half].top;
        sum[half] = threadIdx.x % 4 == 0 ? parts.rows[half].sum : 0.f;
      }
    } else if constexpr (!values_are_keys(C)) {
      end_values(w);
    }
  }
  TC_DEVICE void pack_weights() { out.pack(score.at[0][0]); }

  // Divides by the sums and stores the rows.
  TC_DEVICE void finish(const Work<C>& w) {
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = row_total(half);
      inverse[half] = inverse_of(total);
      if (sizeof(T) == 1 || C.scaled) inverse[half] *= scale_of(p.v_scale, w.head / p.group);
      float lse = lse_of(top[half], total, scale_of_scores(half), kLog2OfLargest);
      const int row = first_row() + sums_row<false>(half);
      if (C.options >= kRanges && p.sinks) {
        const Finished with = with_sink(lse, sink_of(p, w.request, head_of(w, row)));
        inverse[half] *= with.factor;
        lse = with.lse;
      }
      if (p.lse && threadIdx.x % 4 == 0 && query_of(row) < w.rows) p.lse[place_of(w, row)] = lse;
    }
    if constexpr (values_are_keys(C)) {
      this->share(ring.v.inverse, inverse);
      release(&ring.v.inverse_full);
    } else {
      this->store_rows(w, out, inverse);
    }
  }

 private:
  using Rows::query_of, Rows::head_of, Rows::place_of, Rows::first_row;
  // Starts the product of some columns of queries and keys.
  template <int kBegin, int kEnd>
  TC_DEVICE void multiply_columns(bool adds) {
    using Queries = WgmmaTile<T, typename Ring<T, C>::Queries, true>;
    using Keys = WgmmaTile<T, typename Ring<T, C>::Keys, true>;
    constexpr int step = kBegin * int(sizeof(T)) / 32;
    score.template add_tiles<T, kEnd - kBegin, true, true>(
        ring.q[0], first_row(), ring.k[keys.stage], adds, Keys::offset(0, step),
        Queries::offset(0, step));
  }
  // The sum of the weights of a row.
  TC_DEVICE float row_total(int half) const {
    float total = sum[half];
    total += __shfl_xor_sync(kFullWarp, total, 1);
    total += __shfl_xor_sync(kFullWarp, total, 2);
    return total;
  }

  static constexpr float kLog2OfLargest = WeightedSums<T, C>::kLog2OfLargest;
  static_assert(C.scaled != kByHead || C.options < kSoftcap);

  // Makes the rows of this group float16, two lanes a row: those whose sums their warp has.
  TC_DEVICE void convert_queries() {
    constexpr int kOfLane = boxed_dim(C) / 16;  // chunks of 8 elements
    const int lane = threadIdx.x % kWarpSize, row = threadIdx.x / kWarpSize * 16 + lane / 2;
    auto* bytes = reinterpret_cast<unsigned char*>(&ring.q[0]);
    const auto chunk = [&](int i) -> Vec4<uint32_t>& {
      return *reinterpret_cast<Vec4<uint32_t>*>(
          bytes + Ring<T, C>::Queries::place(row, lane % 2 * kOfLane + i));
    };
    __syncwarp();
    uint32_t largest = 0;
    for (int i = 0; i < kOfLane; ++i)
      for (const uint32_t word : chunk(i).values) largest = largest_bits(largest, word);
    const uint32_t other = __shfl_xor_sync(kFullWarp, largest, 1);
    const RowUnit of_row(other > largest ? other : largest);
    for (int i = 0; i < kOfLane; ++i)
      for (uint32_t& word : chunk(i).values) word = in_unit(word, of_row.factor);
    factor[0] = __shfl_sync(kFullWarp, of_row.inverse, lane / 4 * 2);
    factor[1] = __shfl_sync(kFullWarp, of_row.inverse, lane / 4 * 2 + 16);
    ptx::fence_proxy_async();
    __syncwarp();
    meet();
  }

  // Values behind the keys in use may be NaN, which a weight of 0 does not hide: they become 0.
  // All consumers come before the first tile of values.
  TC_DEVICE void clear_hidden(const Work<C>& w) const {
    constexpr int chunks = boxed_values(C) / kVectorSize<T>;
    constexpr int kThreads = (values_are_keys(C) ? 1 : C.consumers) * kWarpgroup;
    const int from = w.keys - (w.tiles - 1) * C.block_n;  // in that tile
    if (from >= C.block_n) return;
    if (w.first_key + w.keys == p.seq_k) return;  // the copy engine writes 0 behind seq_k
    if constexpr (values_are_keys(C))
      ptx::mbarrier_wait_parity(&ring.v.front_full[keys.stage], keys.parity & 1);
    else
      ptx::mbarrier_wait_parity(&ring.values.full[values.stage], values.parity);
    auto* bytes = reinterpret_cast<unsigned char*>(
        &ring.values_of(values_are_keys(C) ? keys.stage : values.stage));
    for (int i = threadIdx.x; i < (C.block_n - from) * chunks; i += kThreads)
      *reinterpret_cast<Vec4<uint32_t>*>(
          bytes + Ring<T, C>::Values::place(from + i / chunks, i % chunks)) = {};
    ptx::fence_proxy_async();
    ptx::bar_sync(kAllConsumers, kThreads);
  }
  TC_DEVICE float scale_of_scores(int half) const {
    if (C.options >= kSoftcap) return 1.f;
    if (C.scaled) return factor_of(half) < 0 ? 1.f : factor_of(half);
    return sizeof(T) == 1 ? factor[0] * kLn2 : p.scale;
  }
  TC_DEVICE float exp2_factor(int half) const {
    return sizeof(T) == 1 ? factor[0] : scale_of_scores(half) * kLog2E;
  }
  TC_DEVICE float factor_of(int half) const { return factor[C.scaled == kByRow ? half : 0]; }
  // Takes the scale of all scores into the factors of rows.
  TC_DEVICE void take_scale(float scale) {
    const auto is_factor = [](float x) { return x > 0 && x < kInfinity; };
    if constexpr (C.scaled == kByRow) {
      const bool are = is_factor(scale * factor[0]) && is_factor(scale * factor[1]);
      for (float& x : factor) x *= are ? scale : -1.f;
    } else {
      factor[0] = is_factor(scale) ? scale : -1.f;
    }
  }
  TC_DEVICE float score_scale(const Work<C>& w) const {
    return p.scale * scale_of(p.k_scale, w.head / p.group);
  }
  TC_DEVICE void scale_scores(float scale) {
#pragma unroll
    for (int c = 0; c < C.block_n / 2; ++c) score.at[0][0][c] *= scale * -factor_of(c / 2 % 2);
  }
  TC_DEVICE void make_logits(const Work<C>& w, int key) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row() + sums_row<false>(half);
      const auto score_at = [&](int i) -> float& {
        return score.at[0][0][i / 2 * 4 + 2 * half + i % 2];
      };
      if constexpr (C.scaled == kByRow)
        for (int i = 0; i < C.block_n / 4; ++i) score_at(i) *= factor[half];
      to_logits<T, C, C.block_n / 4>(p, w, w.batch, w.head, row, score_at, [&](int i) {
        return key + i / 2 * 8 + int(threadIdx.x) % 4 * 2 + i % 2;
      });
    }
  }
  // In the tile from `key` on: those in front of a row's first one, or behind its last one.
  template <bool in_front>
  TC_DEVICE void hide(const Work<C>& w, int key) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const KeyRange seen = w.seen(query_of(first_row() + sums_row<false>(half)));
      const int limit = (in_front ? seen.begin : seen.end) - key - int(threadIdx.x) % 4 * 2;
#pragma unroll
      for (int c = 0; c < C.block_n / 8; ++c) {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if ((8 * c + e < limit) == in_front) score.at[0][0][4 * c + 2 * half + e] = -kInfinity;
      }
    }
  }
  // A row does not see those of the newest keys that the tree keeps from it.
  TC_DEVICE void hide_by_tree(const Work<C>& w, int key) {
    constexpr int kAtOnce = 8;  // keys of a row, of 32 of the tile
    static_assert(C.block_n % (4 * kAtOnce) == 0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = query_of(first_row() + sums_row<false>(half));
      if (query >= w.rows) continue;
      const int64_t at = w.batch * p.tree.batch + (w.first + query) * p.tree.row;
      const TreeRow row{p.tree, at, newest};
      const int end = w.seen(query).end, first = key + int(threadIdx.x) % 4 * 2;
#pragma unroll
      for (int from = 0; from < C.block_n / 4; from += kAtOnce) {
        if (key + 4 * (from + kAtOnce) <= newest) continue;
        const uint32_t hidden = hidden_by_tree<kAtOnce>(
            row, end, [&](int i) { return first + (from + i) / 2 * 8 + i % 2; });
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (hidden >> i & 1) score.at[0][0][(from + i) / 2 * 4 + 2 * half + i % 2] = -kInfinity;
      }
    }
  }
};

}  // namespace tensorcraft::kernel::attention_tiles
