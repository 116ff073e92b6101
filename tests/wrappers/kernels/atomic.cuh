// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/atomic.cuh"
#include "tests/wrappers/kernels/params.h"

// A block's words of `out`: first the value that its 32 threads change one after another (two
// words), then what each got, two words each. in: a start value of two words, a thread's operands x
// and y.
namespace tensorcraft::test {

TC_DEVICE void atomic_add_s32(const Params& p) {
  using T = int32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_add_u32(const Params& p) {
  using T = uint32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_add_u64(const Params& p) {
  using T = uint64_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_add_f32(const Params& p) {
  using T = float;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
// The cell lies in shared memory.
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
TC_DEVICE void atomic_add_f16x2(const Params& p) {
  using T = Vec2<f16>;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_add_bf16x2(const Params& p) {
  using T = Vec2<bf16>;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_add(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_min_s32(const Params& p) {
  using T = int32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_min(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_max_s32(const Params& p) {
  using T = int32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_max(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_min_u32(const Params& p) {
  using T = uint32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_min(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_max_u32(const Params& p) {
  using T = uint32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_max(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_exchange_u32(const Params& p) {
  using T = uint32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_exchange(cell, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_cas_u32(const Params& p) {
  using T = uint32_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_cas(cell, y, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}
TC_DEVICE void atomic_cas_u64(const Params& p) {
  using T = uint64_t;
  constexpr int words = sizeof(T) / 4;
  T* cell = reinterpret_cast<T*>(block_out(p));
  if (threadIdx.x == 0) *cell = *reinterpret_cast<const T*>(block_in(p));
  __syncwarp();
  const auto* in = reinterpret_cast<const T*>(block_in(p) + 2 + threadIdx.x * 4);
  const T x = in[0], y = in[1];
  (void)y;
  T old = x;
  for (unsigned turn = 0; turn < 32; ++turn) {
    if (threadIdx.x == turn) old = atomic_cas(cell, y, x);
    __syncwarp();
  }
  *reinterpret_cast<T*>(block_out(p) + 2 + threadIdx.x * 2) = old;
  if (words == 1) block_out(p)[3 + threadIdx.x * 2] = 0;
  if (words == 1 && threadIdx.x == 0) block_out(p)[1] = 0;
}

}  // namespace tensorcraft::test
