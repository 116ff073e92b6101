// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/atomic.cuh"
#include "tests/wrappers/kernels/params.h"

// A block's words of `out`: first the value that its 32 threads change one after another (two
// words), then what each got, two words each. in: a start value of two words, a thread's operands x
// and y.
namespace tensorcraft::test {

// change(cell, x, y) is the operation; it gives the old value.
template <class T, class Change>
TC_DEVICE void one_by_one(const Params& p, Change change) {
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  T old = in[0];
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = change(cell, in[0], in[1]);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
template <class T>
TC_DEVICE void adds(const Params& p) {
  one_by_one<T>(p, [](T* cell, T x, T) { return atomic_add(cell, x); });
}
template <class T>
TC_DEVICE void minima(const Params& p) {
  one_by_one<T>(p, [](T* cell, T x, T) { return atomic_min(cell, x); });
}
template <class T>
TC_DEVICE void maxima(const Params& p) {
  one_by_one<T>(p, [](T* cell, T x, T) { return atomic_max(cell, x); });
}
template <class T>
TC_DEVICE void increments(const Params& p) {
  one_by_one<T>(p, [](T* cell, T x, T) { return atomic_increment(cell, x); });
}
template <class T>
TC_DEVICE void exchanges(const Params& p) {
  one_by_one<T>(p, [](T* cell, T x, T) { return atomic_exchange(cell, x); });
}
template <class T>
TC_DEVICE void swaps(const Params& p) {
  one_by_one<T>(p, [](T* cell, T x, T y) { return atomic_cas(cell, y, x); });
}

TC_DEVICE void atomic_add_s32(const Params& p) { adds<int32_t>(p); }
TC_DEVICE void atomic_add_u32(const Params& p) { adds<uint32_t>(p); }
TC_DEVICE void atomic_add_u64(const Params& p) { adds<uint64_t>(p); }
TC_DEVICE void atomic_add_f32(const Params& p) { adds<float>(p); }
TC_DEVICE void atomic_add_f16x2(const Params& p) { adds<Vec2<f16>>(p); }
TC_DEVICE void atomic_add_bf16x2(const Params& p) { adds<Vec2<bf16>>(p); }
TC_DEVICE void atomic_min_s32(const Params& p) { minima<int32_t>(p); }
TC_DEVICE void atomic_max_s32(const Params& p) { maxima<int32_t>(p); }
TC_DEVICE void atomic_min_u32(const Params& p) { minima<uint32_t>(p); }
TC_DEVICE void atomic_max_u32(const Params& p) { maxima<uint32_t>(p); }
TC_DEVICE void atomic_cas_u32(const Params& p) { swaps<uint32_t>(p); }
TC_DEVICE void atomic_cas_u64(const Params& p) { swaps<uint64_t>(p); }
TC_DEVICE void atomic_increment_u32(const Params& p) { increments<uint32_t>(p); }
TC_DEVICE void atomic_exchange_u32(const Params& p) { exchanges<uint32_t>(p); }

// The cell is in shared memory.
struct FloatCell {
  float value;
};
TC_DEVICE void atomic_add_f32_shared(const Params& p) {
  FloatCell& cell = static_shared<FloatCell>();
  if (threadIdx.x == 0) cell.value = bit_cast<float>(block_in(p)[0]);
  __syncwarp();
  const auto x = bit_cast<float>(block_in(p)[2 + threadIdx.x * 4]);
  float old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(&cell.value, x);
    __syncwarp();
  }
  block_out(p)[2 + threadIdx.x * 2] = bit_cast<uint32_t>(old);
  block_out(p)[3 + threadIdx.x * 2] = 0;
  if (threadIdx.x != 0) return;
  block_out(p)[0] = bit_cast<uint32_t>(cell.value);
  block_out(p)[1] = 0;
}

}  // namespace tensorcraft::test
