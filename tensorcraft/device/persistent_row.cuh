// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/atomic.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/device/shared.cuh"

// For blocks that stay and walk over rows, alone or as a cluster whose blocks have a slice of each
// row (sm_90): while rows are worked on in shared memory, cp.async brings the next ones there. A
// thread copies what it reads itself, so copies need no barrier. Its functions are few and long: a
// compiler takes as much time for each that it inlines as for 20 instructions.
namespace tensorcraft {

// The addresses that a row is read from, its columns from 0 on.
template <class T>
struct RowSource {
  const T *x, *residual;
};

// In the kernel's static shared struct: what warps tell each other of their part of a row, and the
// row that comes after the next. `Part` is words with over_warp<width>() and
// append(other, count), the join of `count` of them and another.
template <class Part, auto C>
struct RowExchange {
  static constexpr int kWarps = C.threads / kWarpSize, kParts = C.cluster * kWarps;
  struct Words {
    uint32_t values[sizeof(Part) / 4];
  };
  struct Turn {
    Part parts[kParts];
    uint32_t row;
  };
  Turn turns[2];
  uint32_t first[2];    // rows of the block or cluster
  uint64_t arrived[2];  // mbarriers of a cluster: all words of a turn
};

// The rows that a block, or a cluster, works on, their places, and what its warps tell each other
// of a row. C is a Config as RowSlots take it whose group is the block and whose vector has 16
// bytes, with `cluster`, and `stages`: rows that have a place in shared memory.
//
// Blocks see unequal bandwidth and may start late, so each claims the next unclaimed row, two rows
// ahead so that no block waits for the counter. Each claims 3 rows as it starts and one for
// each row it has, so how often all claim is known: the last makes the counter 0, as the kernel
// found it. All threads of the row's blocks construct and run().
template <class T, class Part, auto C, bool has_residual = false>
struct RowPipeline {
  using Exchange = RowExchange<Part, C>;
  using Piece = Packed<T, C.vector>;
  static constexpr int kPieces = C.slots * C.threads;  // in a row or slice
  static constexpr int kEnd = C.stages * kPieces;      // after those of x; then come a residual's
  // With three rows, one waits to be stored. With two, none does, and there is one place for a
  // residual, which is asked for a row later.
  static constexpr bool kLater = C.stages == 3, kLateResidual = C.stages == 2;
  static_assert(kLater || (kLateResidual && has_residual));

  Exchange& shared;
  Piece* pieces;    // the thread's first
  int first, cols;  // in the slice
  uint32_t rank;    // rank of the block in its cluster

  TC_DEVICE RowPipeline(Exchange& exchange, Piece& memory, int row_cols)
      : shared(exchange), pieces(&memory + threadIdx.x) {
    rank = C.cluster > 1 ? ptx::cluster_ctarank() : 0;
    const int slice =
        C.whole ? kPieces * C.vector : round_up(div_ceil(row_cols, C.cluster), C.vector);
    first = int(rank) * slice;
    cols = row_cols - first < slice ? row_cols - first : slice;
  }

  // A column of the slice, and whether it exists.
  TC_DEVICE static int column(int slot) { return (slot * C.threads + int(threadIdx.x)) * C.vector; }
  TC_DEVICE bool has(int slot) const { return C.whole || column(slot) < cols; }

  // Element e of a slot of the row at `place`, with its residual. A loop over e is unrolled.
  TC_DEVICE float at(int place, int slot, int e) const {
    float h = pieces[place + slot * C.threads][e];
    if constexpr (has_residual)
      h += pieces[kEnd + (kLateResidual ? 0 : place) + slot * C.threads][e];
    return h;
  }
  TC_DEVICE void floats(int place, int slot, float (&to)[C.vector]) const {
    for (int e = 0; e < C.vector; ++e) to[e] = at(place, slot, e);
  }

  TC_DEVICE void request(Piece* to, const T* from, uint64_t policy) const {
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      if (has(s))
        ptx::cp_async_cg_16_hint(to + s * C.threads, from + s * C.threads * C.vector, policy);
  }

  // Works on all rows that the calling block gets of `rows`, by the counter `taken`. source(row) is
  // the place that a row has, or would have, and is called two rows ahead; add_up(row, place) is
  // what the calling thread finds of it; take(part) is told the join of all threads'; store(row,
  // place) stores it. If there is room, that happens while the parts of the next row are on their
  // way.
  template <class Source, class AddUp, class Take, class Store>
  TC_DEVICE void run(uint32_t rows, uint32_t* taken, const Source& source, const AddUp& add_up,
                     const Take& take, const Store& store) {
    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    const bool claims = threadIdx.x == 0 && rank == 0;
    const uint32_t last_claim = 3 * (gridDim.x / C.cluster) + rows - 1;
    uint32_t claimed = 0;  // the row after the next; in the thread that claims
    if (claims) {          // first all, so that they are under way at once
      const uint32_t one = ptx::atom_inc_u32(taken, last_claim);
      const uint32_t two = ptx::atom_inc_u32(taken, last_claim);
      claimed = ptx::atom_inc_u32(taken, last_claim);
      shared.first[0] = one;
      shared.first[1] = two;
    }
    uint32_t row, next;
    if constexpr (C.cluster == 1) {
      __syncthreads();
      row = shared.first[0];
      next = shared.first[1];
    } else {
      if (threadIdx.x == 0) {
        for (uint64_t& barrier : shared.arrived) ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init();
      }
      ptx::cluster_sync();  // every block runs, so its memory may be written
      row = ptx::ld_shared_cluster_u32(&shared.first[0], 0);
      next = ptx::ld_shared_cluster_u32(&shared.first[1], 0);
      ptx::cluster_sync();  // and the first may leave
    }

    // The address has been in memory, so that the compiler does not know it as an offset of the
    // thread's from one that all threads have: of copies to such an address by a policy ptxas of
    // CUDA 13.0 makes an instruction that does not exist. jit::has_broken_copies() knows it.
    Piece* volatile* const kept = reinterpret_cast<Piece* volatile*>(pieces);
    *kept = pieces;
    Piece* const own = *kept;
    const uint64_t policy = ptx::createpolicy_evict_last();

    int requested = 0, place = 0, last_place = 0;  // of rows in shared memory
    uint32_t turn = 0, last = ~0u;
    const T* late = nullptr;  // the residual of a row whose x is on its way
#pragma unroll 1
    for (int ahead = 2;; --ahead) {  // the first turns only request
      if (ahead <= 0) {
        const uint32_t current = row;
        const bool exists = row < rows;
        auto& words = shared.turns[turn % 2];
        uint64_t* const barrier = &shared.arrived[turn % 2];
        if (exists) {
          ptx::cp_async_wait_group<1>();
          const Part part = add_up(row, place).over_warp();
          // Warps send again once they have received, and receive once all have sent: so two turns
          // keep apart what is sent and what is read.
          if constexpr (C.cluster == 1) {
            if (lane == 0) words.parts[warp] = part;
            if (claims) words.row = claimed;
          } else {
            if (threadIdx.x == 0) ptx::mbarrier_arrive_expect_tx(barrier, uint32_t(sizeof(words)));
            if (lane < C.cluster) {
              auto* to = reinterpret_cast<uint32_t*>(&words.parts[rank * Exchange::kWarps + warp]);
              for (const uint32_t word : bit_cast<typename Exchange::Words>(part).values)
                ptx::st_async_u32(to++, word, barrier, uint32_t(lane));
            }
            if (claims) {
#pragma unroll 1
              for (uint32_t i = 0; i < C.cluster; ++i)
                ptx::st_async_u32(&words.row, claimed, barrier, i);
            }
          }
          if (claims) claimed = ptx::atom_inc_u32(taken, last_claim);
        }
        if (kLater && last != ~0u) store(last, last_place);
        if (!exists) return;

        if constexpr (C.cluster == 1)
          __syncthreads();
        else
          ptx::mbarrier_wait_parity(barrier, turn / 2 % 2);
        row = next;
        next = words.row;
        constexpr int kLanes = Exchange::kParts < kWarpSize ? Exchange::kParts : kWarpSize;
        Part all = words.parts[lane % kLanes];
#pragma unroll 1
        for (int i = kWarpSize; i < Exchange::kParts; i += kWarpSize)
          all.append(words.parts[i + lane], i / kWarpSize);
        // The lanes that send next tell other blocks by it that the whole warp has read.
        if constexpr (C.cluster > 1) __syncwarp();
        take(all.template over_warp<kLanes>());
        if (!kLater) store(current, place);
        last = current;
        last_place = place;
        place = place == kEnd - kPieces ? 0 : place + kPieces;
        ++turn;
      }
      // Requests a row to the place that has been free longest.
      const uint32_t index = ahead < 2 ? next : row;
      const RowSource<T> from = source(index);
      const int64_t offset = first + column(0);
      if constexpr (kLateResidual) {
        if (late) request(own + kEnd, late + offset, policy);
        ptx::cp_async_commit_group();
        late = index < rows ? from.residual : nullptr;
      }
      if (index < rows) {
        request(own + requested, from.x + offset, policy);
        if constexpr (has_residual && !kLateResidual)
          request(own + kEnd + requested, from.residual + offset, policy);
      }
      ptx::cp_async_commit_group();  // even if it is empty: groups are counted
      requested = requested == kEnd - kPieces ? 0 : requested + kPieces;
    }
  }
};

// Weights of the columns that the calling thread works on, in registers, as memory has them; none
// if they are not `given`.
template <class W, auto C, bool given>
struct OwnWeights {
  static constexpr int kPiece = C.vector < kVectorSize<W> ? C.vector : kVectorSize<W>;
  Packed<W, kPiece> pieces[given ? C.slots : 1][C.vector / kPiece];

  template <class Walk>
  TC_DEVICE OwnWeights(const void* all, const Walk& walk) {
    if constexpr (given) {
      const W* own = static_cast<const W*>(all) + walk.first + walk.column(0);
#pragma unroll
      for (int s = 0; s < C.slots; ++s)
        for (int i = 0; i < C.vector / kPiece; ++i)
          if (walk.has(s))
            pieces[s][i] = Packed<W, kPiece>::load(own + s * C.threads * C.vector + i * kPiece);
    }
  }
  // The weight of element e of a slot, for an unrolled loop over both.
  TC_DEVICE float at(int slot, int e, float other) const {
    if constexpr (!given) return other;
    return pieces[slot][e / kPiece][e % kPiece];
  }
};

}  // namespace tensorcraft
