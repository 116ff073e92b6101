// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tests/wrappers/kernels/params.h"

// Boxes of a tensor by the copy engine; blocks of a warp. in: the first element of the box (five
// words), its words, and for a multicast the mask and the words it brings to each block.
namespace tensorcraft::test {

inline constexpr int kBoxHead = 8, kMaxBoxWords = 8 * 1024, kTmaBlocks = 2;

struct BoxShared {
  alignas(1024) uint32_t words[kMaxBoxWords];
  uint64_t barrier;
};

template <int kRank>
TC_DEVICE void box_begins(int32_t (&at)[kRank], const uint32_t* in) {
  for (int i = 0; i < kRank; ++i) at[i] = int32_t(in[i]);
}

// The tensor is in `in` after the head. out: shared memory with the box.
template <int kRank>
TC_DEVICE void load_box(const Params& p) {
  BoxShared& s = dynamic_shared<BoxShared>();
  const int words = int(block_in(p)[5]);
  if (threadIdx.x == 0) {
    int32_t at[kRank];
    box_begins(at, block_in(p));
    ptx::prefetch_tensormap(&p.map);
    ptx::tma_prefetch(&p.map, at);
    ptx::mbarrier_init(&s.barrier, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&s.barrier, uint32_t(words) * 4);
    ptx::tma_load(s.words, &p.map, at, &s.barrier);
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int i = int(threadIdx.x); i < words; i += 32) block_out(p)[i] = s.words[i];
}
TC_DEVICE void tma_load_1(const Params& p) { load_box<1>(p); }
TC_DEVICE void tma_load_2(const Params& p) { load_box<2>(p); }
TC_DEVICE void tma_load_3(const Params& p) { load_box<3>(p); }
TC_DEVICE void tma_load_4(const Params& p) { load_box<4>(p); }
TC_DEVICE void tma_load_5(const Params& p) { load_box<5>(p); }

// The same of windows over the tensor: `in` has their offsets in words 6 and 7, 16 bits each.
template <int kRank>
TC_DEVICE void load_windows(const Params& p) {
  BoxShared& s = dynamic_shared<BoxShared>();
  const int words = int(block_in(p)[5]);
  if (threadIdx.x == 0) {
    int32_t at[kRank];
    box_begins(at, block_in(p));
    uint16_t offsets[kRank - 2];
    for (int i = 0; i < kRank - 2; ++i)
      offsets[i] = uint16_t(block_in(p)[6 + i / 2] >> i % 2 * 16 & 0xffff);
    ptx::mbarrier_init(&s.barrier, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(&s.barrier, uint32_t(words) * 4);
    ptx::tma_load_im2col(s.words, &p.map, at, offsets, &s.barrier);
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int i = int(threadIdx.x); i < words; i += 32) block_out(p)[i] = s.words[i];
}
TC_DEVICE void tma_im2col_3(const Params& p) { load_windows<3>(p); }
TC_DEVICE void tma_im2col_4(const Params& p) { load_windows<4>(p); }
TC_DEVICE void tma_im2col_5(const Params& p) { load_windows<5>(p); }

// Block 0 loads the box into the blocks of the mask, block 1 the same into its own second half.
// out: by block, both halves, zeros if nothing came.
template <int kRank>
TC_DEVICE void load_box_multicast(const Params& p) {
  BoxShared& s = dynamic_shared<BoxShared>();
  const uint32_t* in = cluster_in<kTmaBlocks>(p);
  const uint32_t rank = ptx::cluster_ctarank(), mask = in[6];
  const int words = int(in[5]);
  for (int i = int(threadIdx.x); i < 2 * words; i += 32) s.words[i] = 0;
  ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&s.barrier, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::cluster_sync();
  if (threadIdx.x == 0) {
    int32_t at[kRank];
    box_begins(at, in);
    const uint32_t boxes = (mask >> rank & 1u) + rank;
    ptx::mbarrier_arrive_expect_tx(&s.barrier, boxes * uint32_t(words) * 4);
    if (rank == 0)
      ptx::tma_load_multicast(s.words, &p.map, at, &s.barrier, uint16_t(mask));
    else
      ptx::tma_load(s.words + words, &p.map, at, &s.barrier);
  }
  __syncwarp();
  ptx::mbarrier_wait_parity(&s.barrier, 0);
  for (int i = int(threadIdx.x); i < 2 * words; i += 32)
    cluster_out<kTmaBlocks>(p)[int(rank) * 2 * words + i] = s.words[i];
  ptx::cluster_sync();
}
TC_DEVICE void tma_multicast_1(const Params& p) { load_box_multicast<1>(p); }
TC_DEVICE void tma_multicast_2(const Params& p) { load_box_multicast<2>(p); }
TC_DEVICE void tma_multicast_3(const Params& p) { load_box_multicast<3>(p); }
TC_DEVICE void tma_multicast_4(const Params& p) { load_box_multicast<4>(p); }
TC_DEVICE void tma_multicast_5(const Params& p) { load_box_multicast<5>(p); }

struct Nothing {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap*, const int32_t (&)[kRank], const void*) const {}
};

// The tensor is `out`. in: after the head a box that is stored, and the operand of the reduction
// that follows.
template <int kRank, class Reduce = Nothing>
TC_DEVICE void store_box(const Params& p, Reduce reduce = {}) {
  BoxShared& s = dynamic_shared<BoxShared>();
  const int words = int(block_in(p)[5]);
  for (int i = int(threadIdx.x); i < 2 * words; i += 32) s.words[i] = block_in(p)[kBoxHead + i];
  ptx::fence_proxy_async();
  __syncwarp();
  if (threadIdx.x != 0) return;
  int32_t at[kRank];
  box_begins(at, block_in(p));
  ptx::tma_store(&p.map, at, s.words);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
  reduce(&p.map, at, s.words + words);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}
TC_DEVICE void tma_store_1(const Params& p) { store_box<1>(p); }
TC_DEVICE void tma_store_2(const Params& p) { store_box<2>(p); }
TC_DEVICE void tma_store_3(const Params& p) { store_box<3>(p); }
TC_DEVICE void tma_store_4(const Params& p) { store_box<4>(p); }
TC_DEVICE void tma_store_5(const Params& p) { store_box<5>(p); }

struct Add {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap* map, const int32_t (&at)[kRank], const void* x) const {
    ptx::tma_reduce_add(map, at, x);
  }
};
struct Min {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap* map, const int32_t (&at)[kRank], const void* x) const {
    ptx::tma_reduce_min(map, at, x);
  }
};
struct Max {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap* map, const int32_t (&at)[kRank], const void* x) const {
    ptx::tma_reduce_max(map, at, x);
  }
};
struct And {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap* map, const int32_t (&at)[kRank], const void* x) const {
    ptx::tma_reduce_and(map, at, x);
  }
};
struct Or {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap* map, const int32_t (&at)[kRank], const void* x) const {
    ptx::tma_reduce_or(map, at, x);
  }
};
struct Xor {
  template <int kRank>
  TC_DEVICE void operator()(const TensorMap* map, const int32_t (&at)[kRank], const void* x) const {
    ptx::tma_reduce_xor(map, at, x);
  }
};
TC_DEVICE void tma_add_1(const Params& p) { store_box<1>(p, Add()); }
TC_DEVICE void tma_add_2(const Params& p) { store_box<2>(p, Add()); }
TC_DEVICE void tma_add_3(const Params& p) { store_box<3>(p, Add()); }
TC_DEVICE void tma_add_4(const Params& p) { store_box<4>(p, Add()); }
TC_DEVICE void tma_add_5(const Params& p) { store_box<5>(p, Add()); }
TC_DEVICE void tma_min_2(const Params& p) { store_box<2>(p, Min()); }
TC_DEVICE void tma_max_2(const Params& p) { store_box<2>(p, Max()); }
TC_DEVICE void tma_and_2(const Params& p) { store_box<2>(p, And()); }
TC_DEVICE void tma_or_2(const Params& p) { store_box<2>(p, Or()); }
TC_DEVICE void tma_xor_2(const Params& p) { store_box<2>(p, Xor()); }

}  // namespace tensorcraft::test
