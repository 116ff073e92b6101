// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: ids are cut into chunks, a block has one and a warp a part of it, so each id is
// read twice, not twice for each expert. The row of an id is a sum:
//   first row of its expert + ids of the expert in chunks before + in warps before + in turns of
//   the warp before + in lanes before.
// Each is a count, and counts do not depend on who counts first; so nothing but counts is added
// atomically, and the order of rows is that of the ids. Counts of other chunks come from the step
// before (count.cuh); if there is one chunk it is all.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/scan.cuh"
#include "tensorcraft/ops/moe_permute/params.h"

namespace tensorcraft::kernel::moe_permute {

// before: ids of each expert in front of a warp. The group of an expert has `size` ids, and begins
// at row `first`.
template <Config C>
struct Experts {
  static constexpr int kWarps = C.threads / kWarpSize;
  int32_t before[kWarps][kMaxExperts];
  int32_t size[kMaxExperts], first[kMaxExperts + 1];
};

// Sizes, with the padding, become the rows where groups begin; one warp calls.
template <Config C>
TC_DEVICE void find_groups(const SortParams& p, Experts<C>& s) {
  const int each = div_ceil(p.experts, kWarpSize), begin = int(threadIdx.x) * each;
  const int end = begin + each < p.experts ? begin + each : p.experts;
  int rows = 0;
#pragma unroll 1
  for (int e = begin; e < end; ++e) rows += round_up(s.size[e], p.align);
  int first = warp_scan(rows) - rows;
#pragma unroll 1
  for (int e = begin; e < end; ++e) {
    s.first[e] = first;
    first += round_up(s.size[e], p.align);
  }
  if (begin < p.experts && end == p.experts) s.first[p.experts] = first;
}

// A bit for each lane that has the expert of the calling one, which has one.
TC_DEVICE uint32_t lanes_with_same(int expert, int bits) {
  uint32_t same = __ballot_sync(kFullWarp, expert >= 0);
#pragma unroll 1
  for (int bit = 0; bit < bits; ++bit) {
    const bool is_set = expert >> bit & 1;
    const uint32_t set = __ballot_sync(kFullWarp, is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}

struct Chunks {
  template <Config C>
  TC_DEVICE static void run(const SortParams& p) {
    auto& s = static_shared<Experts<C>>();
    constexpr int kWarps = Experts<C>::kWarps;
    const int thread = int(threadIdx.x), lane = thread % kWarpSize, warp = thread / kWarpSize;
    const int block = int(blockIdx.x), part = p.chunk / kWarps;
    const int begin = block * p.chunk + warp * part;
    const int end = begin > p.entries - part ? p.entries : begin + part;

#pragma unroll 1
    for (int e = thread; e < p.experts; e += C.threads)
      for (int w = 0; w < kWarps; ++w) s.before[w][e] = 0;
    __syncthreads();
    for (int i = begin + lane; i < end; i += kWarpSize)
      if (const int expert = expert_of(p, i); expert >= 0) atomic_add(&s.before[warp][expert], 1);
    __syncthreads();

#pragma unroll 1
    for (int e = thread; e < p.experts; e += C.threads) {
      int before = 0, others = 0;
      if (p.chunks > 1) {
#pragma unroll 8
        for (int c = 0; c < p.chunks; ++c) {
          const int count = p.workspace[int64_t(c) * p.experts + e];
          before += c < block ? count : 0;
          others += c != block ? count : 0;
        }
      }
      int own = 0;
      for (int w = 0; w < kWarps; ++w) {
        const int count = s.before[w][e];
        s.before[w][e] = before + own;
        own += count;
      }
      s.size[e] = others + own;
    }
    __syncthreads();
    if (warp == 0) find_groups<C>(p, s);
    __syncthreads();

#pragma unroll 1
    for (int turn = begin; turn < end; turn += kWarpSize) {
      const int i = turn + lane, expert = i < end ? expert_of(p, i) : -1;
      const uint32_t same = lanes_with_same(expert, p.expert_bits);
      const int rank = count_bits(same & ((1u << lane) - 1));
      int row = -1;
      if (expert >= 0) {
        row = s.first[expert] + s.before[warp][expert] + rank;
        source_of(p, row) = i;
      }
      if (i < end) row_of(p, i) = row;
      __syncwarp();
      if (expert >= 0 && rank == 0) s.before[warp][expert] += count_bits(same);
      __syncwarp();
    }

    // Rows without an id, and the offsets: over the blocks.
#pragma unroll 1
    for (int e = block * kWarps + warp; e < p.experts; e += int(gridDim.x) * kWarps)
#pragma unroll 1
      for (int row = s.first[e] + s.size[e] + lane; row < s.first[e + 1]; row += kWarpSize)
        source_of(p, row) = -1;
#pragma unroll 1
    for (int row = s.first[p.experts] + block * C.threads + thread; row < p.rows;
         row += int(gridDim.x) * C.threads)
      source_of(p, row) = -1;
    if (block == 0)
#pragma unroll 1
      for (int e = thread; e <= p.experts; e += C.threads) store_offset(p, e, s.first[e]);
  }
};

}  // namespace tensorcraft::kernel::moe_permute
