// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention_part.cuh"
#include "tensorcraft/device/begin_kernel.cuh"
#include "tensorcraft/device/key_parts.h"

// The two steps of attention that splits keys, over any way to find them.
namespace tensorcraft {

// A block of the first step has one of `slices` of the values by runs of parts by tiles of rows by
// heads of keys by requests. Slices of the values are neighbours: they read the same keys.
struct SplitBlock {
  int slice, run, tile, key_head, request;

  TC_DEVICE SplitBlock(int index, int slices, int runs, int tiles, int key_heads) {
    slice = index % slices;
    index /= slices;
    run = index % runs;
    index /= runs;
    tile = index % tiles;
    index /= tiles;
    key_head = index % key_heads;
    request = index / key_heads;
  }
};

// The queries of one request, of heads that share a head of keys. Row r is query r / group of head
// r % group of these.
template <class T>
struct alignas(16) SplitRows {  // a host compiler fills it in pieces of 16 bytes
  const T* q;                   // of row 0
  int64_t q_row;                // elements between queries
  int64_t row;                  // of the results, that of row 0
  int64_t q_head;               // elements between heads
  int64_t row_row, row_head;    // rows of results between queries and between heads
  int group, queries, keys;
  int head_dim;
  Window window;

  TC_DEVICE int count() const { return group * queries; }
  TC_DEVICE const T* query(int r) const { return q + r / group * q_row + r % group * q_head; }
  TC_DEVICE int64_t result(int r) const { return row + r / group * row_row + r % group * row_head; }
  TC_DEVICE KeyRange seen(int r) const {
    return keys_of(window, keys, place_of_query(queries, keys, r / group));
  }
};

// A row's result needs this besides the row's parts.
template <class T>
struct ResultRow {
  int keys;  // of its request
  KeyRange seen;
  float sink;  // -inf: none
  T* out;
  float* lse;  // null: not wanted
};

// Weights of parts and of a sink are relative to `shift`; their sum is given as a factor and an
// lse.
struct PartSum {
  float shift, sum = 0;
  TC_DEVICE explicit PartSum(float top) : shift(top == -kInfinity ? 0.f : top) {}
  TC_DEVICE float weight(const RowSum& part) const { return expf(part.top - shift) * part.sum; }
  TC_DEVICE float factor() const { return sum == 0.f ? 0.f : 1.f / sum; }
  TC_DEVICE float lse() const { return sum == 0.f ? -kInfinity : shift + logf(sum); }
};

// Where the first step stores values of a row: of a part or, if that is alone, of the result.
template <class T>
struct PartStore {
  T* out = nullptr;  // null: of a part
  float* values = nullptr;
  float weight = 0, factor = 0;

  template <int N>
  TC_DEVICE void operator()(int d, float (&x)[N]) const {
    if (out) {
      for (float& value : x) value = (weight * value + 0.f) * factor;  // as combine_parts() does
      from_floats<T, N>(x).store(out + d);
    } else if (values) {
      AlignedVector<float, N> vector;
      for (int n = 0; n < N; ++n) vector[n] = x[n];
      store_vector(values + d, vector);
    }
  }
};

// The first step: rows from `first` on meet the parts of a run, by an AttentionPart. make_keys()
// finds the keys; its values begin at `slice` of a row's. find(row) knows where a result goes: a
// single part is the result, with the bits that combine_parts() gives it.
template <class Part, class T, class MakeKeys, class Find, class Tree = NoTree>
TC_DEVICE void split_keys(const SplitRows<T>& rows, int first, int run, int slice,
                          const KeyParts& parts, const Logits& logits, const MakeKeys& make_keys,
                          const Find& find, const Tree& tree = {}) {
  const int count = rows.count(), next = first + Part::kRows;
  const int keys_of_part = part_keys(rows.keys), keys_of_run = parts.run * keys_of_part;
  int begin = rows.seen(first).begin, end = rows.seen((next < count ? next : count) - 1).end;
  begin = begin > run * keys_of_run ? begin : run * keys_of_run;
  end = end < (run + 1) * keys_of_run ? end : (run + 1) * keys_of_run;
  const bool is_alone = parts.parts == 1;
  if (begin >= end) {
    if (!is_alone) return;
    begin = end = 0;
  }
  const auto query = [&](int r) -> const T* {
    return first + r < count ? rows.query(first + r) : nullptr;
  };
  const auto seen = [&](int r) -> KeyRange {
    return first + r < count ? rows.seen(first + r) : KeyRange{0, 0};
  };
  const bool has_sum = slice == 0 && Part::has_first_value();
  const auto store_of = [&](int part, int r, const RowSum& found) -> PartStore<T> {
    if (first + r >= count) return {};
    const int64_t row = rows.result(first + r);
    if (!is_alone) {
      if (has_sum) *parts.sum_of(row, part) = found;
      return {.values = parts.values_of(row, part) + slice};
    }
    const ResultRow<T> result = find(row);
    PartSum sum(fmaxf(result.sink, found.top));
    const float weight = sum.weight(found);
    sum.sum = weight + sum.weight({result.sink, 1});
    if (has_sum && result.lse) *result.lse = sum.lse();
    return {.out = result.out + slice, .weight = weight, .factor = sum.factor()};
  };
  Part work(dynamic_shared<typename Part::Shared>(), count - first, query,
            {rows.head_dim, parts.values - slice});
  int part = begin / keys_of_part, end_of_part = (part + 1) * keys_of_part;
  const auto added = [&](int next_key) {
    if (next_key < end_of_part && next_key < end) return;
    work.finish([&](int r, const RowSum& found) { return store_of(part, r, found); });
    work.reset();
    ++part;
    end_of_part += keys_of_part;
  };
  work.add(make_keys(), begin, end, seen, logits, added, tree);
}

// A warp's share of a row in the second step: kOwn of the kSums sums, 4 values a lane.
template <int kOwn>
struct PartialSums {
  float values[kOwn][4] = {}, weights[kOwn] = {};

  // Part `first` + i and every kSums-th behind it go to sum i. So many are on their way at once as
  // leave registers.
  TC_DEVICE void add(const KeyParts& all, int64_t row, int first, int last, int d,
                     const PartSum& sum) {
    constexpr int kTurns = 8 / kOwn;
    const RowSum* const sums = all.sum_of(row, 0);
    const float* const from = all.values_of(row, 0) + (d < all.values ? d : 0);
#pragma unroll 1
    for (; first < last; first += kTurns * kSums) {
      RowSum found[kTurns][kOwn];
      AlignedVector<float, 4> x[kTurns][kOwn];
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
          int part = first + turn * kSums + i;
          if (part >= last) part = first;  // changes nothing
          found[turn][i] = sums[part];
          x[turn][i] = load_vector<4>(from + int64_t(part) * all.values);
        }
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn)
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
          if (first + turn * kSums + i >= last) continue;
          const float weight = sum.weight(found[turn][i]);
          weights[i] += weight;
          for (int n = 0; n < 4; ++n) values[i][n] += weight * x[turn][i][n];
        }
    }
  }
};
struct CombineShared {
  float values[kSums][kCombinedValues];
  float weights[kSums];
};

// The second step of 128 values of a row from `begin` on. It adds up the parts, dealt to kSums sums
// in turn, then the sums in their order, and the sink once. It reads only the parts that the row
// sees, since no others were written.
template <int kWarps, class T>
TC_DEVICE void combine_parts(const KeyParts& all, int64_t row, int begin,
                             const ResultRow<T>& result) {
  constexpr int kOwn = kSums / kWarps;
  const int lane = int(threadIdx.x % 32), warp = kWarps == 1 ? 0 : int(threadIdx.x / 32);
  const int d = begin + 4 * lane;
  const KeyRange& seen = result.seen;
  const int keys_of_part = part_keys(result.keys), first = seen.begin / keys_of_part;
  const int last = seen.begin < seen.end ? div_ceil(seen.end, keys_of_part) : first;
  float top = result.sink;
  for (int part = first + lane; part < last; part += 32)
    top = fmaxf(top, all.sum_of(row, part)->top);
  PartSum sum(warp_max(top));
  PartialSums<kOwn> own;
  own.add(all, row, first + warp * kOwn, last, d, sum);
  float values[4] = {};
  if constexpr (kWarps == 1) {
    for (int i = 0; i < kSums; ++i) {
      sum.sum += own.weights[i];
      for (int n = 0; n < 4; ++n) values[n] += own.values[i][n];
    }
  } else {
    auto& shared = static_shared<CombineShared>();
    for (int i = 0; i < kOwn; ++i) {
      for (int n = 0; n < 4; ++n) shared.values[warp * kOwn + i][4 * lane + n] = own.values[i][n];
      if (lane == 0) shared.weights[warp * kOwn + i] = own.weights[i];
    }
    __syncthreads();
    if (warp > 0) return;
    for (int i = 0; i < kSums; ++i) {
      sum.sum += shared.weights[i];
      for (int n = 0; n < 4; ++n) values[n] += shared.values[i][4 * lane + n];
    }
  }
  sum.sum += sum.weight({result.sink, 1});
  if (d >= all.values) return;
  for (float& value : values) value *= sum.factor();
  from_floats<T, 4>(values).store(result.out + d);
  if (result.lse && d == 0) *result.lse = sum.lse();
}

// The second step of the chunk of a row that the warp or the block has; find(row) knows the row.
template <CombineConfig C, class Find>
TC_DEVICE void combine_row(const KeyParts& parts, const Find& find) {
  const int64_t index = int64_t(blockIdx.x) * C.rows() + (C.rows() == 1 ? 0 : threadIdx.x / 32);
  const int64_t row = index / parts.chunks();
  const int begin = int(index % parts.chunks()) * kCombinedValues;
  if (row >= parts.rows) return;
  const auto result = find(row);  // reads what was there before the first step
  begin_kernel();
  combine_parts<C.row_warps>(parts, row, begin, result);
}

}  // namespace tensorcraft
