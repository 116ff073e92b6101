// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/attention_part.cuh"
#include "tensorcraft/device/key_parts.h"

// The two steps of attention that splits keys, over any way to find them.
namespace tensorcraft {

// What a block of the first step has to do, of `slices` of the values by parts by tiles of rows by
// heads of keys by requests. Slices of the values are neighbours: they read the same keys.
struct SplitBlock {
  int slice, part, tile, key_head, request;

  TC_DEVICE SplitBlock(int index, int slices, int parts, int tiles, int key_heads) {
    slice = index % slices;
    index /= slices;
    part = index % parts;
    index /= parts;
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
  Window window;

  TC_DEVICE int count() const { return group * queries; }
  TC_DEVICE const T* query(int r) const { return q + r / group * q_row + r % group * q_head; }
  TC_DEVICE int64_t result(int r) const { return row + r / group * row_row + r % group * row_head; }
  TC_DEVICE KeyRange seen(int r) const {
    return keys_of(window, keys, place_of_query(queries, keys, r / group));
  }
};

// The first step: rows from `first` on meet a part of the keys, by an AttentionPart. make_keys()
// finds them; its values begin at `slice` of a row's.
template <class Part, class T, class MakeKeys>
TC_DEVICE void split_keys(const SplitRows<T>& rows, int first, int part, int slice,
                          const KeyParts& parts, const Logits& logits, const MakeKeys& make_keys) {
  const int count = rows.count(), next = first + kPartRows;
  int begin = rows.seen(first).begin, end = rows.seen((next < count ? next : count) - 1).end;
  begin = begin > part * kPartKeys ? begin : part * kPartKeys;
  end = end < (part + 1) * kPartKeys ? end : (part + 1) * kPartKeys;
  if (begin >= end) return;
  const auto query = [&](int r) -> const T* {
    return first + r < count ? rows.query(first + r) : nullptr;
  };
  const auto seen = [&](int r) -> KeyRange {
    return first + r < count ? rows.seen(first + r) : KeyRange{0, 0};
  };
  Part work(static_shared<typename Part::Shared>(), count - first, query);
  work.add(make_keys(), begin, end, seen, logits);
  work.finish([&](int r, int d, const Vec4<float>& out, float lse) {
    if (first + r >= count) return;
    const int64_t row = rows.result(first + r);
    store_vector(parts.values_of(row, part) + slice + d, out);
    if (slice + d == 0) *parts.lse_of(row, part) = lse;
  });
}

// The second step: a warp adds up the parts of a row in their order, and the sink once; -inf: none.
// It reads only the parts that the row sees, since no others were written.
template <class T, int kMaxValues>
TC_DEVICE void combine_parts(const KeyParts& all, int64_t row, const KeyRange& seen, float sink,
                             T* out, float* lse_out) {
  constexpr int kOfLane = kMaxValues / 128;  // accesses of 4 values
  const int lane = int(threadIdx.x % 32);
  const int first = seen.begin / kPartKeys;
  const int last = seen.begin < seen.end ? div_ceil(seen.end, kPartKeys) : first;
  const float *lse = all.lse_of(row, 0), *values = all.values_of(row, 0);
  float top = sink;
  for (int part = first + lane; part < last; part += 32) top = fmaxf(top, lse[part]);
  top = warp_max(top);
  const float shift = top == -kInfinity ? 0.f : top;
  float sum = 0, acc[kOfLane][4] = {};
  for (int part = first; part < last; ++part) {
    const float of_part = lse[part];
    if (of_part == -kInfinity) continue;
    const float weight = expf(of_part - shift);
    sum += weight;
    for (int e = 0; e < kOfLane; ++e)
      if (const int d = 4 * lane + 128 * e; d < all.values) {
        const auto x = load_vector<4>(values + int64_t(part) * all.values + d);
        for (int n = 0; n < 4; ++n) acc[e][n] += weight * x[n];
      }
  }
  sum += expf(sink - shift);
  const float inverse = sum == 0.f ? 0.f : 1.f / sum;
  for (int e = 0; e < kOfLane; ++e)
    if (const int d = 4 * lane + 128 * e; d < all.values) {
      for (float& x : acc[e]) x *= inverse;
      from_floats<T, 4>(acc[e]).store(out + d);
    }
  if (lse_out && lane == 0) *lse_out = sum == 0.f ? -kInfinity : shift + logf(sum);
}

// What the second step has to know of a row.
template <class T>
struct CombinedRow {
  KeyRange seen;
  float sink;
  T* out;
};

// The second step of the row that the warp has, which find(row) knows; lse: of all rows, or null.
template <class T, int kMaxValues, int kThreads, class Find>
TC_DEVICE void combine_row(const KeyParts& parts, float* lse, const Find& find) {
  const int64_t row = int64_t(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= parts.rows) return;
  const CombinedRow<T> found = find(row);
  combine_parts<T, kMaxValues>(parts, row, found.seen, found.sink, found.out,
                               lse ? lse + row : nullptr);
}

}  // namespace tensorcraft
