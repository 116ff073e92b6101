// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: indices are read once, however long a line is. Claims of whole lines lie in global
// memory, a panel of lines at a time, so that few panels fit the L2 cache, where atomic maxima are
// made. Blocks take tickets: those of a panel's claims come before those that write its places, and
// the next panel's claims come between the two, so that writing seldom waits. A block waits only
// for tickets before its own, whose blocks run or are done.
//   indices read = num_updates for each line; one more read and write of 4 bytes for each place, in
//   the cache.
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/ptx/memory_order.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/scatter/claims.cuh"

namespace tensorcraft::kernel::scatter {

// What a ticket stands for: a block of a panel's claims, or of its writes.
struct PanelWork {
  uint32_t panel, block;
  bool writes;
};
TC_DEVICE PanelWork work_of(const Params& p, uint32_t ticket) {
  if (ticket < p.claiming_blocks) return {0, ticket, false};
  ticket -= p.claiming_blocks;
  const uint32_t both = p.claiming_blocks + p.writing_blocks;
  const uint32_t panel = ticket / both, at = ticket - panel * both;
  if (panel + 1 == p.panels) return {panel, at, true};
  if (at < p.claiming_blocks) return {panel + 1, at, false};
  return {panel, at - p.claiming_blocks, true};
}

// All threads of the block go on once `counter` is `count`, and see what was done before each of
// its steps. step() is one of them, after what all threads of the block have done.
TC_DEVICE void wait_for(const uint32_t* counter, uint32_t count) {
  if (threadIdx.x == 0)
    while (ptx::ld_acquire_gpu_u32(counter) < count) {
    }
  __syncthreads();
}
TC_DEVICE void step(uint32_t* counter) {
  __syncthreads();
  if (threadIdx.x == 0) ptx::red_release_gpu_add_u32(counter, 1);
}

// A thread has kUpdatesOfThread updates of one line. Neighbouring threads read neighbouring
// indices.
template <class Id, Config C>
TC_DEVICE void claim_places(const Params& p, const Tile& panel, int32_t* claims, uint32_t block) {
  constexpr int kAtOnce = 8;
  int line, first, next = C.threads;
  if (p.is_axis_inner) {
    const uint32_t chunks = p.claiming_blocks >> panel.log2_lines;
    line = int(block / chunks);
    first = int(block % chunks) * (C.threads * kUpdatesOfThread) + int(threadIdx.x);
  } else {
    next = C.threads >> panel.log2_lines;
    line = int(threadIdx.x) & ((1 << panel.log2_lines) - 1);
    first = int(block) * (next * kUpdatesOfThread) + (int(threadIdx.x) >> panel.log2_lines);
  }
  if (panel.first_line + line >= p.num_lines) return;
  const Id* const indices =
      static_cast<const Id*>(p.indices) + p.lines.offsets(uint32_t(panel.first_line) + line).index;
  const int end = int(p.num_updates);
#pragma unroll 1
  for (int u = 0; u < kUpdatesOfThread; u += kAtOnce, first += kAtOnce * next) {
    Id ids[kAtOnce];  // all are asked for before the first is used
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int j = first + k * next;
      ids[k] = j < end ? indices[j * p.index_step] : Id(p.size);  // outside
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t place = position(ids[k], p.size);
      if (place >= 0) atomic_max(claims + panel.entry(line, place), first + k * next + 1);
    }
  }
}

struct Panels {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    uint32_t* const tickets = static_cast<uint32_t*>(p.workspace);
    uint32_t *const claimed = tickets + 1, *const written = claimed + p.panels;
    auto& ticket = static_shared<uint32_t>();
    if (threadIdx.x == 0) ticket = atomic_add(tickets, 1u);
    __syncthreads();
    const PanelWork work = work_of(p, ticket);
    const Tile panel{int64_t(work.panel) << p.log2_lines, 0, p.log2_lines, p.log2_places,
                     p.is_axis_inner != 0};
    int32_t* const claims =
        reinterpret_cast<int32_t*>(static_cast<uint8_t*>(p.workspace) + claims_at(p.panels)) +
        int64_t(work.panel % kPanelsAtOnce) * panel.entries();
    if (!work.writes) {
      if (work.panel >= kPanelsAtOnce)
        wait_for(written + work.panel - kPanelsAtOnce, p.writing_blocks);
      if (p.index_bytes == 8)
        claim_places<int64_t, C>(p, panel, claims, work.block);
      else
        claim_places<int32_t, C>(p, panel, claims, work.block);
      return step(claimed + work.panel);
    }
    wait_for(claimed + work.panel, p.claiming_blocks);
    constexpr int kStep = C.threads * C.vector, kClaims = C.vector < 4 ? C.vector : 4;
    int e = (int(work.block) * kUnitsOfThread * C.threads + int(threadIdx.x)) * C.vector;
#pragma unroll 1
    for (int unit = 0; unit < kUnitsOfThread; ++unit, e += kStep) {
      if (e >= panel.entries()) break;
      write_places<T, C>(p, panel, claims, e);
#pragma unroll
      for (int k = 0; k < C.vector; k += kClaims)  // for the panel that comes here
        store_vector(claims + e + k, AlignedVector<int32_t, kClaims>{});
    }
    step(written + work.panel);
  }
};

}  // namespace tensorcraft::kernel::scatter
