// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a block has an equal part of the merge of row ends and stored elements (csr.h), and
// a thread an equal part of that, so neither a long row nor a million empty ones makes anyone wait:
//   steps of a thread = (rows + stored) / threads, whatever the rows are like.
// Products go through shared memory, read as neighbours. Rows that cross threads are joined by a
// scan in a fixed order, rows that cross blocks by finish.cuh; so results repeat to the bit.
#include "tensorcraft/ops/spmv/element.cuh"

namespace tensorcraft::kernel::spmv {

// ends: where the rows that end in the tile do, in elements of the tile. tails, closed: of warps.
struct MergeTile {
  float products[kMergeTile];
  int ends[kMergeTile];
  float tails[kMaxWarps];
  int closed[kMaxWarps];
};

// What a thread knows of the row that goes on behind it: its own part, or the whole row so far if
// no row ended in it. A scan over threads is of these.
struct Tail {
  float value;
  int closed;  // a row ended
};
template <class S>
TC_DEVICE Tail followed_by(const S& semiring, const Tail& a, const Tail& b) {
  return {b.closed ? b.value : semiring.reduce(a.value, b.value), a.closed | b.closed};
}

// The tail of all threads before the calling one; `last` becomes that of the block.
template <int kThreads, class S>
TC_DEVICE Tail tail_before(const S& semiring, MergeTile& shared, const Tail& own, Tail& last) {
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
  Tail sum = own;
  for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
    const Tail below{__shfl_up_sync(kFullWarp, sum.value, unsigned(lanes)),
                     __shfl_up_sync(kFullWarp, sum.closed, unsigned(lanes))};
    if (lane >= lanes) sum = followed_by(semiring, below, sum);
  }
  if (lane == kWarpSize - 1) {
    shared.tails[warp] = sum.value;
    shared.closed[warp] = sum.closed;
  }
  __syncthreads();
  Tail before{semiring.identity(), 0}, all = before;
  for (int w = 0; w < kThreads / kWarpSize; ++w) {
    if (w == warp) before = all;
    all = followed_by(semiring, all, {shared.tails[w], shared.closed[w]});
  }
  last = all;
  const Tail below{__shfl_up_sync(kFullWarp, sum.value, 1u),
                   __shfl_up_sync(kFullWarp, sum.closed, 1u)};
  return lane ? followed_by(semiring, before, below) : before;
}

struct MergePath {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    constexpr int kSteps = kMergeTile / C.threads;  // of a thread
    auto& shared = static_shared<MergeTile>();
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    const int thread = int(threadIdx.x);
    const int64_t tile = blockIdx.x, row = first_row(p, tile);
    const int64_t first = steps_before(p, tile) - row;
    const int64_t more_rows = first_row(p, tile + 1) - row;
    const int rows = more_rows < 0 ? 0 : more_rows < kMergeTile ? int(more_rows) : kMergeTile;
    const int64_t all = steps_before(p, tile + 1) - steps_before(p, tile) - rows;
    const int stored = all < 0 ? 0 : int(all);

    Elements<T, I, kSteps> elements;
    elements.load(p, first + thread, C.threads, first + stored);
    for (int i = 0; i < kSteps; ++i)
      shared.products[thread + i * C.threads] = elements.value(semiring, i);
    for (int i = thread; i < rows; i += C.threads) {
      const int64_t end = int64_t(row_begin<I>(p.a, row + i + 1)) - first;
      shared.ends[i] = end < 0 ? 0 : end < stored ? int(end) : stored;
    }
    __syncthreads();

    // Where this thread's part of the merge begins.
    const int steps = thread * kSteps;
    int low = steps > stored ? steps - stored : 0, high = steps < rows ? steps : rows;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (shared.ends[middle] < steps - middle)
        low = middle + 1;
      else
        high = middle;
    }
    int r = low, k = steps - low, ended = -1;
    float total = semiring.identity(), head = total;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (k < stored && (r == rows || k < shared.ends[r])) {
        total = semiring.reduce(total, shared.products[k++]);
      } else if (r < rows) {
        if (ended < 0) {
          ended = r;
          head = total;
        } else {
          store<T>(p, row + r, total);
        }
        total = semiring.identity();
        ++r;
      }
    }

    Tail last;
    const Tail before = tail_before<C.threads>(semiring, shared, {total, ended >= 0}, last);
    if (ended >= 0) {
      head = semiring.reduce(before.value, head);
      if (ended == 0 && int64_t(row_begin<I>(p.a, row)) < first)
        tile_heads(p)[tile] = head;
      else
        store<T>(p, row + ended, head);
    }
    if (thread == 0) tile_tails(p)[tile] = last.value;
  }
};

}  // namespace tensorcraft::kernel::spmv
