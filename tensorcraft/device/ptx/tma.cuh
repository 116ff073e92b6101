// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/cvta.cuh"
#include "tensorcraft/device/tensor_map.h"
#if !TC_PTX
#include "tensorcraft/device/host_async.h"
#endif

// Copies of boxes of a tensor by the copy engine (sm_90), issued by one thread; bulk.cuh has their
// groups. Shared memory is 128-byte aligned and holds the box densely, dimension 0 innermost, its
// 16-byte units where the map's swizzle puts them. The map is the kernel's own parameter. A box
// begins at a multiple of 16 bytes along dimension 0, and one that is written at no negative
// coordinate; else an H200 reports an illegal instruction. There a write that passes the end of
// dimension 0 goes on to the next multiple of 16 bytes.
namespace tensorcraft::ptx {

#if TC_PTX
// The coordinates as text: operands from %2 on, and the number of the first after them.
#define TC_AT1 "{%2}"
#define TC_AT2 "{%2, %3}"
#define TC_AT3 "{%2, %3, %4}"
#define TC_AT4 "{%2, %3, %4, %5}"
#define TC_AT5 "{%2, %3, %4, %5, %6}"
#define TC_AT_OPERANDS1 "r"(at[0])
#define TC_AT_OPERANDS2 TC_AT_OPERANDS1, "r"(at[1])
#define TC_AT_OPERANDS3 TC_AT_OPERANDS2, "r"(at[2])
#define TC_AT_OPERANDS4 TC_AT_OPERANDS3, "r"(at[3])
#define TC_AT_OPERANDS5 TC_AT_OPERANDS4, "r"(at[4])
#define TC_TMA_LOAD(rank, bar)                                                             \
  if constexpr (kRank == rank)                                                             \
  asm volatile(                                                                            \
      "cp.async.bulk.tensor." #rank                                                        \
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " TC_AT##rank \
      "], [" bar "];" ::"r"(cvta_to_shared(to)),                                           \
      "l"(map), TC_AT_OPERANDS##rank, "r"(cvta_to_shared(barrier))                         \
      : "memory")
#define TC_TMA_MULTICAST(rank, bar, mask_text)                                                     \
  if constexpr (kRank == rank)                                                                     \
  asm volatile("cp.async.bulk.tensor." #rank                                                       \
               "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "    \
               "[%0], [%1, " TC_AT##rank "], [" bar "], " mask_text ";" ::"r"(cvta_to_shared(to)), \
               "l"(map), TC_AT_OPERANDS##rank, "r"(cvta_to_shared(barrier)), "h"(mask)             \
               : "memory")
#define TC_TMA_STORE(rank)                                              \
  if constexpr (kRank == rank)                                          \
  asm volatile("cp.async.bulk.tensor." #rank                            \
               "d.global.shared::cta.tile.bulk_group [%1, " TC_AT##rank \
               "], [%0];" ::"r"(cvta_to_shared(from)),                  \
               "l"(map), TC_AT_OPERANDS##rank                           \
               : "memory")
#define TC_TMA_REDUCE(rank, op)                                                             \
  if constexpr (kRank == rank)                                                              \
  asm volatile("cp.reduce.async.bulk.tensor." #rank "d.global.shared::cta." op              \
               ".tile.bulk_group [%1, " TC_AT##rank "], [%0];" ::"r"(cvta_to_shared(from)), \
               "l"(map), TC_AT_OPERANDS##rank                                               \
               : "memory")
#define TC_TMA_IM2COL(rank, bar, offsets_text, ...)                                          \
  if constexpr (kRank == rank)                                                               \
  asm volatile(                                                                              \
      "cp.async.bulk.tensor." #rank                                                          \
      "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " TC_AT##rank \
      "], [" bar "], {" offsets_text "};" ::"r"(cvta_to_shared(to)),                         \
      "l"(map), TC_AT_OPERANDS##rank, "r"(cvta_to_shared(barrier)), __VA_ARGS__              \
      : "memory")
// Operand 0 is there for the numbers of the others.
#define TC_TMA_PREFETCH(rank)                                                              \
  if constexpr (kRank == rank)                                                             \
  asm volatile("cp.async.bulk.prefetch.tensor." #rank "d.L2.global.tile [%1, " TC_AT##rank \
               "];" ::"r"(0),                                                              \
               "l"(map), TC_AT_OPERANDS##rank                                              \
               : "memory")
#endif

// cp.async.bulk.tensor, global to shared: the box that begins at element `at` (dimension 0 first),
// in full even if part of it is outside the tensor: its bytes count at the barrier.
template <int kRank>
TC_DEVICE void tma_load(void* to, const TensorMap* map, const int32_t (&at)[kRank],
                        uint64_t* barrier) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_LOAD(1, "%3");
  TC_TMA_LOAD(2, "%4");
  TC_TMA_LOAD(3, "%5");
  TC_TMA_LOAD(4, "%6");
  TC_TMA_LOAD(5, "%7");
#else
  simt::tensor_load(to, map, at, kRank, barrier, 0);
#endif
}

// Copies into the blocks of the cluster in `mask`, at the same places; each counts its bytes at
// its own barrier.
template <int kRank>
TC_DEVICE void tma_load_multicast(void* to, const TensorMap* map, const int32_t (&at)[kRank],
                                  uint64_t* barrier, uint16_t mask) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_MULTICAST(1, "%3", "%4");
  TC_TMA_MULTICAST(2, "%4", "%5");
  TC_TMA_MULTICAST(3, "%5", "%6");
  TC_TMA_MULTICAST(4, "%6", "%7");
  TC_TMA_MULTICAST(5, "%7", "%8");
#else
  simt::tensor_load(to, map, at, kRank, barrier, mask);
#endif
}

// cp.async.bulk.tensor.im2col, global to shared, by a map of windows over images: the element at
// `offsets` (columns first) of as many windows as the map says, one behind the other from the one
// whose first place is `at` (channel, column, row, image), each a line of channels. Zeros are what
// lies outside an image, and what follows the last.
template <int kRank>
TC_DEVICE void tma_load_im2col(void* to, const TensorMap* map, const int32_t (&at)[kRank],
                               const uint16_t (&offsets)[kRank - 2], uint64_t* barrier) {
  static_assert(kRank >= 3 && kRank <= 5);
#if TC_PTX
  TC_TMA_IM2COL(3, "%5", "%6", "h"(offsets[0]));
  TC_TMA_IM2COL(4, "%6", "%7, %8", "h"(offsets[0]), "h"(offsets[1]));
  TC_TMA_IM2COL(5, "%7", "%8, %9, %10", "h"(offsets[0]), "h"(offsets[1]), "h"(offsets[2]));
#else
  simt::tensor_load_im2col(to, map, at, offsets, kRank, barrier);
#endif
}

// cp.async.bulk.tensor, shared to global, in a bulk group; what is outside the tensor is not
// written.
template <int kRank>
TC_DEVICE void tma_store(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_STORE(1);
  TC_TMA_STORE(2);
  TC_TMA_STORE(3);
  TC_TMA_STORE(4);
  TC_TMA_STORE(5);
#else
  simt::tensor_store(map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.add, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_add(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "add");
  TC_TMA_REDUCE(2, "add");
  TC_TMA_REDUCE(3, "add");
  TC_TMA_REDUCE(4, "add");
  TC_TMA_REDUCE(5, "add");
#else
  simt::tensor_reduce(simt::Reduce::add, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.min, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_min(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "min");
  TC_TMA_REDUCE(2, "min");
  TC_TMA_REDUCE(3, "min");
  TC_TMA_REDUCE(4, "min");
  TC_TMA_REDUCE(5, "min");
#else
  simt::tensor_reduce(simt::Reduce::min, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.max, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_max(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "max");
  TC_TMA_REDUCE(2, "max");
  TC_TMA_REDUCE(3, "max");
  TC_TMA_REDUCE(4, "max");
  TC_TMA_REDUCE(5, "max");
#else
  simt::tensor_reduce(simt::Reduce::max, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.and, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_and(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "and");
  TC_TMA_REDUCE(2, "and");
  TC_TMA_REDUCE(3, "and");
  TC_TMA_REDUCE(4, "and");
  TC_TMA_REDUCE(5, "and");
#else
  simt::tensor_reduce(simt::Reduce::bit_and, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.or, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_or(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "or");
  TC_TMA_REDUCE(2, "or");
  TC_TMA_REDUCE(3, "or");
  TC_TMA_REDUCE(4, "or");
  TC_TMA_REDUCE(5, "or");
#else
  simt::tensor_reduce(simt::Reduce::bit_or, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.xor, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_xor(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "xor");
  TC_TMA_REDUCE(2, "xor");
  TC_TMA_REDUCE(3, "xor");
  TC_TMA_REDUCE(4, "xor");
  TC_TMA_REDUCE(5, "xor");
#else
  simt::tensor_reduce(simt::Reduce::bit_xor, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.inc, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_inc(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "inc");
  TC_TMA_REDUCE(2, "inc");
  TC_TMA_REDUCE(3, "inc");
  TC_TMA_REDUCE(4, "inc");
  TC_TMA_REDUCE(5, "inc");
#else
  simt::tensor_reduce(simt::Reduce::inc, map, at, kRank, from);
#endif
}

// cp.reduce.async.bulk.tensor.dec, of the map's element type.
template <int kRank>
TC_DEVICE void tma_reduce_dec(const TensorMap* map, const int32_t (&at)[kRank], const void* from) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_REDUCE(1, "dec");
  TC_TMA_REDUCE(2, "dec");
  TC_TMA_REDUCE(3, "dec");
  TC_TMA_REDUCE(4, "dec");
  TC_TMA_REDUCE(5, "dec");
#else
  simt::tensor_reduce(simt::Reduce::dec, map, at, kRank, from);
#endif
}

// cp.async.bulk.prefetch.tensor: a hint.
template <int kRank>
TC_DEVICE void tma_prefetch(const TensorMap* map, const int32_t (&at)[kRank]) {
  static_assert(kRank >= 1 && kRank <= 5);
#if TC_PTX
  TC_TMA_PREFETCH(1);
  TC_TMA_PREFETCH(2);
  TC_TMA_PREFETCH(3);
  TC_TMA_PREFETCH(4);
  TC_TMA_PREFETCH(5);
#else
  simt::tensor_prefetch(map, at, kRank);
#endif
}

// prefetch.tensormap: a hint, before the first copy.
TC_DEVICE void prefetch_tensormap(const TensorMap* map) {
#if TC_PTX
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#else
  (void)map;
#endif
}

}  // namespace tensorcraft::ptx
