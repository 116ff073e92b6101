// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a thread has 16 bytes of a token, and reads those of kAtOnce rows before it adds
// the first: it waits once for all rows and weights, and once for all elements:
//   bytes in flight = 16 kAtOnce a thread.
// Sums are those of `naive`, bit for bit: the order of slots does not depend on what is in flight.
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/moe_combine/params.h"

namespace tensorcraft::kernel::moe_combine {

inline constexpr int kAtOnce = 8;

struct Rows {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int N = kVectorSize<T>;
    const int64_t token = blockIdx.x / uint32_t(p.pieces);
    const int64_t piece = blockIdx.x - uint32_t(token) * uint32_t(p.pieces);
    const int64_t col = (piece * C.threads + threadIdx.x) * N;
    if (col >= p.hidden) return;
    const T* const y = static_cast<const T*>(p.y) + col;
    float sums[N] = {};
#pragma unroll 1
    for (int64_t first = 0; first < p.k; first += kAtOnce) {
      Slot slots[kAtOnce];
      Packed<T, N> held[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        slots[i] = {-1, 0};
        if (first + i < p.k) slots[i] = slot_of(p, token, first + i);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (slots[i].row >= 0) held[i] = Packed<T, N>::load(y + slots[i].row * p.y_strides[0]);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (slots[i].row < 0) continue;
        for (int e = 0; e < N; ++e) sums[e] = fmaf(slots[i].weight, held[i][e], sums[e]);
      }
    }
    from_floats<T, N>(sums).store(static_cast<T*>(p.out) + token * p.out_strides[0] + col);
  }
};

}  // namespace tensorcraft::kernel::moe_combine
