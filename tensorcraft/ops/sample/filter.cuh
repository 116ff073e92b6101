// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a block filters a row of which it has the parts: the lowest key that stays is found by
// histograms of 11 bits of the keys.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/ops/sample/row.cuh"

namespace tensorcraft::kernel::sample {

inline constexpr int kBlockChunks = 1024;
inline constexpr int kDigitBits = 11, kBins = 1 << kDigitBits, kBinGroups = kBins / kWarpSize;
inline constexpr int kKeyBits = 32 + kIndexBits;

// Counts and weights of the elements that have a digit in common; low and high are the weight.
struct Histogram {
  uint32_t count[kBins], low[kBins], high[kBins];

  TC_DEVICE uint64_t weight(int bin) const { return uint64_t(high[bin]) << 32 | low[bin]; }
  // There are no 64-bit additions in shared memory, so a carry goes by itself.
  TC_DEVICE void add(int bin, uint64_t weight) {
    atomic_add(&count[bin], 1u);
    const auto part = uint32_t(weight);
    const uint32_t before = atomic_add(&low[bin], part);
    const uint32_t rest = uint32_t(weight >> 32) + (before + part < before ? 1 : 0);
    if (rest) atomic_add(&high[bin], rest);
  }
};

struct RowShared {
  BlockReduce<uint32_t> largest;
  Part parts[kBlockChunks];
};
struct FilterShared : RowShared {
  BlockReduce<uint64_t> total;
  Histogram histogram;
  uint64_t groups[kBinGroups];
};

template <Config C, class R>
struct Filter {
  const R& r;
  FilterShared& shared;
  Kept kept;

  TC_DEVICE void clear() const {
    Histogram& h = shared.histogram;
    for (int i = int(threadIdx.x); i < kBins; i += C.threads) h.count[i] = h.low[i] = h.high[i] = 0;
    __syncthreads();
  }
  TC_DEVICE uint64_t amount(int bin, bool by_weight) const {
    return by_weight ? shared.histogram.weight(bin) : shared.histogram.count[bin];
  }
  // The bins that a warp reads at once, together; every thread gets the sum of all.
  TC_DEVICE uint64_t sum_groups(bool by_weight) const {
    __syncthreads();  // the histogram is complete
    const int lane = int(threadIdx.x) % kWarpSize;
#pragma unroll 1
    for (int g = int(threadIdx.x) / kWarpSize; g < kBinGroups; g += C.threads / kWarpSize) {
      const uint64_t sum = warp_sum(amount(g * kWarpSize + lane, by_weight));
      if (lane == 0) shared.groups[g] = sum;
    }
    __syncthreads();
    uint64_t all = 0;
#pragma unroll 4
    for (const uint64_t group : shared.groups) all += group;
    return all;
  }
  // From the last bin down, the one in which the amount reaches `left`, from which what lies above
  // it goes.
  TC_DEVICE int find(uint64_t& left, bool by_weight) const {
    const int lane = int(threadIdx.x) % kWarpSize;
    int group = kBinGroups - 1;
#pragma unroll 1
    while (group > 0 && left > shared.groups[group]) left -= shared.groups[group--];
    const int bin = group * kWarpSize + kWarpSize - 1 - lane;
    const uint64_t own = amount(bin, by_weight), up_to = warp_scan(own);
    const unsigned reached = __ballot_sync(kFullWarp, up_to >= left);
    int which = 0;
#pragma unroll 1
    while (which < kWarpSize - 1 && !(reached >> which & 1)) ++which;
    left -= warp_broadcast(up_to - own, which);
    return group * kWarpSize + kWarpSize - 1 - which;
  }

  // The first digit of the largest of each chunk.
  TC_DEVICE void fill_from_parts() const {
    for (int64_t c = threadIdx.x; c < r.chunks(); c += C.threads)
      atomic_add(&shared.histogram.count[shared.parts[c].order >> (32 - kDigitBits)], 1u);
  }
  // Of the elements that stay so far, not below `lowest`, whose keys begin with `prefix`: the next
  // digit.
  TC_DEVICE void fill(uint64_t prefix, int shift, int bits, uint32_t lowest, bool by_weight) const {
#pragma unroll 1
    for (int64_t c = threadIdx.x / kWarpSize; c < r.chunks(); c += C.threads / kWarpSize) {
      if (shared.parts[c].order < lowest) continue;
      for_each<C>(r, c, value_of(lowest), [&](float x, int64_t index) {
        const uint64_t key = key_of(order_of(x), index, r.p.cols);
        if (key < kept.last || key >> (shift + bits) != prefix) return;
        shared.histogram.add(int(key >> shift) & ((1 << bits) - 1), by_weight ? kept.weight(x) : 0);
      });
    }
  }
  // Finds the largest key from which on `wanted` elements stay, or as much weight. Orders below
  // `bound` are known not to be needed; so many largest of chunks give one first.
  TC_DEVICE void search(uint64_t wanted, uint32_t bound, bool by_weight) {
    const int index_bits = bits_of(uint64_t(r.p.cols - 1));
    bool of_parts = !by_weight && wanted <= uint64_t(r.chunks());
    uint64_t prefix = 0, left = wanted;
    int shift = kKeyBits;
#pragma unroll 1
    while (shift > 0) {
      const bool is_first = shift == kKeyBits, is_value = shift > kIndexBits;
      if (shift == kIndexBits && index_bits < kIndexBits) {
        prefix <<= kIndexBits - index_bits;  // these bits are 0
        shift = index_bits;
        if (shift == 0) break;
      }
      const int bits = Smaller()(is_value ? shift - kIndexBits : shift, int(kDigitBits));
      const uint64_t from = is_first ? kept.last : Larger()(prefix << shift, kept.last);
      shift -= bits;
      clear();
      if (of_parts)
        fill_from_parts();
      else
        fill(prefix, shift, bits, Larger()(bound, uint32_t(from >> kIndexBits)), by_weight);
      const uint64_t all = sum_groups(by_weight);
      if (all < left) return;  // see target_of()
      const int bin = find(left, by_weight);
      const uint32_t count = shared.histogram.count[bin];
      __syncthreads();  // all threads have read the histogram
      if (of_parts) {
        of_parts = false;
        bound = uint32_t(bin) << (32 - kDigitBits);
        left = wanted;
        shift = kKeyBits;
        continue;
      }
      prefix = prefix << bits | uint64_t(bin);
      if (count == 1 || (!by_weight && left == count)) break;
    }
    kept.last = Larger()(kept.last, prefix << shift);
  }

  // Sums the parts of what stays.
  TC_DEVICE void sum_parts() const {
    for (int64_t c = threadIdx.x / kWarpSize; c < r.chunks(); c += C.threads / kWarpSize) {
      Part part{0, shared.parts[c].order, 0};
      if (kept.has_any(part.order)) part = filtered_part<C>(r, c, part.order, kept);
      __syncwarp();  // all lanes have read the order
      if (threadIdx.x % kWarpSize == 0) shared.parts[c] = part;
    }
    __syncthreads();
  }
  TC_DEVICE uint64_t total() const {
    uint64_t sum = 0;
    for (int64_t c = threadIdx.x; c < r.chunks(); c += C.threads)
      sum += share_of(shared.parts[c], kept.most, kept.scale);
    return block_sum(shared.total, sum);
  }
  // One filter after the other; in the end the parts are of what stays.
  TC_DEVICE void run() {
    const Settings& s = r.settings;
#pragma unroll 1  // what both have in common is compiled once
    for (int by_weight = 0; by_weight < 2; ++by_weight) {
      uint64_t wanted = 0;
      uint32_t bound = 0;
      if (by_weight && s.share != 0) {
        const uint64_t all = total();
        wanted = target_of(all, s.share);
        bound = bound_of(all, wanted, r.p.cols, kept.most, kept.scale);
      } else if (!by_weight && s.top_k < r.p.cols) {
        wanted = uint64_t(s.top_k);
      }
      if (wanted != 0) search(wanted, bound, by_weight != 0);
      if (by_weight) kept.least = s.least;
      if (wanted != 0 || kept.least != 0) sum_parts();
    }
  }
};

// Filters and picks, in the block that has the parts of a row in shared memory.
template <Config C, class R, class Shared>
TC_DEVICE void filter_and_pick(const R& r, Shared& shared, uint32_t largest) {
  const float most = value_of(largest);
  Kept kept = Kept::all_of(r, most);
  if constexpr (C.filters != 0) {
    if (!r.takes_largest(most)) {
      Filter<C, R> filter{r, shared, kept};
      filter.run();
      kept = filter.kept;
    }
  }
  if (threadIdx.x < kWarpSize)
    store_pick<C>(r, kept, largest, [&](int64_t c) { return shared.parts[c]; });
}

// The largest of the block's threads, and a barrier.
struct LargestOf : Larger {
  template <class V>
  TC_DEVICE static V identity() {
    return V(0);
  }
};

}  // namespace tensorcraft::kernel::sample
