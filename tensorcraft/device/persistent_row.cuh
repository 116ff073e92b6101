// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/atomic.cuh"
#include "tensorcraft/device/cluster.cuh"
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/row_group.cuh"

// For blocks that stay and walk over rows, alone or as a cluster whose blocks have a slice of each
// row (sm_90): while a row is worked on in registers, cp.async brings the next to shared memory.
// A thread copies what it reads itself, so copies need no barrier. C is a Config as RowSlots take
// it whose group is the block, with `cluster`; a slice of a row fits its slots.
namespace tensorcraft {

// In shared memory: the columns of a slice that each thread works on.
template <class T, auto C>
struct OwnColumns {
  static constexpr int kPiece = kVectorSize<T>, kPieces = C.vector / kPiece;
  static constexpr int kOwn = C.slots * kPieces * C.threads;  // pieces of all threads
  using Piece = Packed<T, kPiece>;
  Piece pieces[C.slots][kPieces][C.threads];

  // Where the calling thread's first piece is. The address has been in memory, so that the compiler
  // does not know it as an offset of the thread's from one that all threads have: of copies to such
  // an address by a policy ptxas of CUDA 13.0 makes an instruction that does not exist. So does a
  // loop over slots that is not unrolled. jit::has_broken_copies() knows the instruction.
  TC_DEVICE Piece* place() {
    Piece* const first = &pieces[0][0][threadIdx.x];
    auto* const kept = reinterpret_cast<Piece* volatile*>(first);
    *kept = first;
    return *kept;
  }

  // Starts the copies of a slot of the calling thread's to its place(), of `cols` columns of a
  // slice. They are complete when it has committed and waited.
  TC_DEVICE static void request(Piece* place, int slot, const T* slice, int cols) {
    const int column = (slot * C.threads + int(threadIdx.x)) * C.vector;
    if (!C.whole && column >= cols) return;
    for (int i = 0; i < kPieces; ++i)
      ptx::cp_async_cg_16_hint(place + (slot * kPieces + i) * C.threads,
                               slice + column + i * kPiece, ptx::createpolicy_evict_last());
  }
  TC_DEVICE void request(const T* slice, int cols) {
    Piece* const to = place();
#pragma unroll
    for (int s = 0; s < C.slots; ++s) request(to, s, slice, cols);
  }

  TC_DEVICE const Piece& piece(int slot, int i) const { return pieces[slot][i][threadIdx.x]; }
  TC_DEVICE void floats(float (&to)[C.vector], int slot) const {
    for (int i = 0; i < kPieces; ++i) {
      float part[kPiece];
      to_floats(part, piece(slot, i));
      for (int e = 0; e < kPiece; ++e) to[i * kPiece + e] = part[e];
    }
  }
};

// Where a row is read from, its columns from 0 on; null where there is no row.
template <class T>
struct RowSource {
  const T *x, *residual;
};

// The slice of a block, and the memory where rows of x, and of a residual, arrive.
template <class T, auto C, bool has_residual = false>
struct PersistentRow {
  using Own = OwnColumns<T, C>;
  Own* arrivals;
  typename Own::Piece* place;  // of the first of them
  int first, cols;

  TC_DEVICE PersistentRow(Own& memory, int row_cols) : arrivals(&memory), place(memory.place()) {
    const int slice = C.whole ? C.slots * C.threads * C.vector
                              : round_up(div_ceil(row_cols, C.cluster), C.vector);
    first = C.cluster > 1 ? int(ptx::cluster_ctarank()) * slice : 0;
    cols = row_cols - first < slice ? row_cols - first : slice;
  }

  // The memory behind the arrivals, for columns of another kind.
  template <class W>
  TC_DEVICE OwnColumns<W, C>* behind() const {
    return reinterpret_cast<OwnColumns<W, C>*>(arrivals + (has_residual ? 2 : 1));
  }

  // Requests a row, if there is one, whose place is free.
  TC_DEVICE void request(const RowSource<T>& from) const {
    if (!from.x) return;
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      request(s, from);
      ptx::cp_async_commit_group();
    }
  }

  // Waits for the row that was requested.
  TC_DEVICE void take(RowSlots<T, C, has_residual>& row) const {
    ptx::cp_async_wait_group<0>();
    row.cols = cols;
#pragma unroll
    for (int s = 0; s < C.slots; ++s) take(s, row);
  }
  // The same, and requests each slot of the next row as soon as its place is free.
  TC_DEVICE void take(RowSlots<T, C, has_residual>& row, const RowSource<T>& next) const {
    row.cols = cols;
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      ptx::cp_async_wait_group<C.slots - 1>();
      take(s, row);
      if (next.x) request(s, next);
      ptx::cp_async_commit_group();  // also where it is empty: groups are counted
    }
  }

 private:
  TC_DEVICE void request(int slot, const RowSource<T>& from) const {
    Own::request(place, slot, from.x + first, cols);
    if constexpr (has_residual) Own::request(place + Own::kOwn, slot, from.residual + first, cols);
  }
  TC_DEVICE void take(int slot, RowSlots<T, C, has_residual>& row) const {
    Packed<T, C.vector> x{}, residual{};
    if (row.has(slot)) {
      x = arrivals[0].piece(slot, 0);
      if constexpr (has_residual) residual = arrivals[1].piece(slot, 0);
    }
    row.hold(slot, x, residual);
  }
};

// In the kernel's static shared struct: what warps tell each other of their part of a row, and the
// row that comes after the next. `Part` is words with join(other) and over_warp<width>().
template <class Part, auto C>
struct RowExchange {
  static constexpr int kWarps = C.threads / kWarpSize, kParts = C.cluster * kWarps;
  static constexpr int kWords = sizeof(Part) / 4;
  struct Words {
    uint32_t values[kWords];
  };
  struct Turn {
    Part parts[kParts];
    uint32_t row;
  };
  Turn turns[2];
  uint32_t first[2];    // rows of the block or cluster
  uint64_t arrived[2];  // mbarriers of a cluster: all words of a turn
};

// Which rows a block, or a cluster, works on, and what its warps tell each other of a row. Blocks
// do not get equal parts of the memory's speed, nor need all start at once, so each takes the next
// row that nobody has, claimed two rows ahead so that nobody waits for the counter. Each walk
// claims 3 rows as it starts and one for each row it has, so how often all claim is known: the last
// makes the counter 0, as the kernel found it. All threads of the row's blocks construct; then,
// while `row` is one of the kernel's `rows`, they send() and receive(). What they do in between
// hides the way. A warp sends again once it has received, and receives once all have sent: so two
// turns keep apart what is sent and what is read.
template <class Part, auto C>
struct RowWalk {
  using Exchange = RowExchange<Part, C>;
  Exchange& shared;
  uint32_t* taken;
  uint32_t last;  // claim of all walks
  uint32_t row = 0, next = 0;
  uint32_t claimed = 0;  // the row after those; in the thread that claims
  uint32_t passed = 0;   // turns; the next one and its phase are bits of it

  TC_DEVICE RowWalk(Exchange& exchange, uint32_t* counter, int64_t rows)
      : shared(exchange), taken(counter), last(3 * (gridDim.x / C.cluster) + uint32_t(rows) - 1) {
    uint32_t(&first)[2] = shared.first;
    if (claims()) {
      const uint32_t one = claim(), two = claim();  // first all, so that they are under way at once
      claimed = claim();
      first[0] = one;
      first[1] = two;
    }
    if constexpr (C.cluster == 1) {
      __syncthreads();
      row = first[0];
      next = first[1];
    } else {
      if (threadIdx.x == 0) {
        for (uint64_t& barrier : shared.arrived) ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init();
      }
      ptx::cluster_sync();  // every block runs, so its memory may be written
      row = ptx::ld_shared_cluster_u32(&first[0], 0);
      next = ptx::ld_shared_cluster_u32(&first[1], 0);
      ptx::cluster_sync();  // and the first may leave
    }
  }

  // What the calling thread knows of `row`.
  TC_DEVICE void send(Part own) {
    own = own.over_warp();
    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    const uint32_t turn = passed % 2;
    auto& to = shared.turns[turn];
    if constexpr (C.cluster == 1) {
      if (lane == 0) to.parts[warp] = own;
      if (threadIdx.x == 0) to.row = claimed;
    } else {
      uint64_t* barrier = &shared.arrived[turn];
      if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_tx(barrier, uint32_t(sizeof(to)));
      if (lane < C.cluster) {
        Part& place = to.parts[int(ptx::cluster_ctarank()) * Exchange::kWarps + warp];
        const auto words = bit_cast<typename Exchange::Words>(own);
        for (int i = 0; i < Exchange::kWords; ++i)
          ptx::st_async_u32(reinterpret_cast<uint32_t*>(&place) + i, words.values[i], barrier,
                            uint32_t(lane));
      }
      if (claims()) {
#pragma unroll 1
        for (uint32_t i = 0; i < C.cluster; ++i) ptx::st_async_u32(&to.row, claimed, barrier, i);
      }
    }
    if (claims()) claimed = claim();
  }

  // The join of what all threads of the row's blocks have sent; then `row` is the next.
  TC_DEVICE Part receive() {
    const uint32_t turn = passed % 2;
    const auto& from = shared.turns[turn];
    if constexpr (C.cluster == 1) {
      __syncthreads();
    } else {
      ptx::mbarrier_wait_parity(&shared.arrived[turn], passed / 2 % 2);
    }
    row = next;
    next = from.row;
    const Part all = joined<Exchange::kParts>(from.parts);
    // The lanes that send next tell other blocks by it that the whole warp has read.
    if constexpr (C.cluster > 1) __syncwarp();
    ++passed;
    return all.template over_warp<kLanes>();
  }

 private:
  static constexpr int kLanes = Exchange::kParts < kWarpSize ? Exchange::kParts : kWarpSize;

  // Of `count` parts those that are the calling lane's, in pairs, which are of as many values each.
  template <int count>
  TC_DEVICE static Part joined(const Part* parts) {
    if constexpr (count <= kWarpSize) {
      return parts[int(threadIdx.x) % kLanes];
    } else {
      Part all = joined<count / 2>(parts);
      all.join(joined<count / 2>(parts + count / 2));
      return all;
    }
  }
  TC_DEVICE uint32_t claim() const { return atomic_increment(taken, last); }
  TC_DEVICE static bool claims() {
    return threadIdx.x == 0 && (C.cluster == 1 || ptx::cluster_ctarank() == 0);
  }
};

}  // namespace tensorcraft
