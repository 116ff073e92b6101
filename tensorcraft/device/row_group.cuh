// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/load.cuh"
#include "tensorcraft/device/reduce.cuh"

// A group of neighbouring threads that share a row: a power of two up to a warp, or the block.
namespace tensorcraft {

// Shares each warp's partial result, `own` in the calling one: lane i returns that of warp i %
// kWarps. All threads of the block call, once.
template <int group, class Part>
TC_DEVICE Part part_of_warps(BlockReduce<Part>& shared, const Part& own) {
  constexpr int kWarps = group / kWarpSize;
  static_assert(group % kWarpSize == 0 && (kWarps & (kWarps - 1)) == 0);
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
  if (lane == 0) shared.parts[warp] = own;
  __syncthreads();
  return shared.parts[lane % kWarps];
}

// Every thread gets the reduction over its group. All threads of the block call; a group larger
// than a warp is the block, and costs a barrier. `shared` serves this one reduction of the kernel.
template <int group, class Op>
TC_DEVICE float group_reduce_once(BlockReduce<float>& shared, float v, Op op) {
  if constexpr (group <= kWarpSize) {
    return warp_reduce<group>(v, op);
  } else {
    v = part_of_warps<group>(shared, warp_reduce(v, op));
    return warp_reduce<group / kWarpSize>(v, op);
  }
}
// Reduces with a barrier more, after which `shared` may serve again.
template <int group, class Op>
TC_DEVICE float group_reduce(BlockReduce<float>& shared, float v, Op op) {
  if constexpr (group <= kWarpSize)
    return warp_reduce<group>(v, op);
  else
    return block_reduce(shared, v, op);
}

// The row of the calling thread's group, if each group of a grid has one of at most 2^31-1 rows. A
// thread without a row is told the first: it still takes part in shuffles.
struct GroupRow {
  uint32_t row;
  bool exists;
};
template <auto C>
TC_DEVICE GroupRow group_row(int64_t rows) {
  const uint32_t row = blockIdx.x * (C.threads / C.group) + threadIdx.x / C.group;
  return row < uint32_t(rows) ? GroupRow{row, true} : GroupRow{0, false};
}

// kCount neighbours as floats and back, in accesses of up to 16 bytes. The address is a multiple of
// 16 bytes, or of all kCount elements if they are fewer.
template <int kCount, class T>
TC_DEVICE void load_floats(float (&to)[kCount], const T* from) {
  constexpr int kStep = kCount < kVectorSize<T> ? kCount : kVectorSize<T>;
  for (int i = 0; i < kCount; i += kStep) to_floats(to + i, Packed<T, kStep>::load(from + i));
}

// Loads what is read once (device/streamed.cuh).
template <int kCount, class T>
TC_DEVICE void load_streamed_floats(float (&to)[kCount], const T* from, uint64_t policy) {
  if constexpr (kCount < kVectorSize<T>) {
    load_floats(to, from);
  } else {
    constexpr int kStep = kVectorSize<T>;
    for (int i = 0; i < kCount; i += kStep)
      to_floats(to + i, Packed<T, kStep>::load_streamed(from + i, policy));
  }
}

// Loads what nothing writes while the kernel runs: these loads may pass stores.
template <int kCount, class T>
TC_DEVICE void load_constant_floats(float (&to)[kCount], const T* from) {
  if constexpr (kCount < kVectorSize<T>) {
    load_floats(to, from);
  } else {
    constexpr int kStep = kVectorSize<T>;
    for (int i = 0; i < kCount; i += kStep)
      to_floats(to + i, bit_cast<Packed<T, kStep>>(ptx::ld_global_nc_v4(from + i)));
  }
}

template <int kCount, class T>
TC_DEVICE void store_floats(T* to, const float (&from)[kCount]) {
  constexpr int kStep = kCount < kVectorSize<T> ? kCount : kVectorSize<T>;
  for (int i = 0; i < kCount; i += kStep) from_floats<T, kStep>(from + i).store(to + i);
}

// The part of a row that one thread of a group holds: `slots` accesses of `vector` neighbours, the
// group's own next to each other. C is a Config with threads, group, vector, slots, and `whole`:
// the slots of a group are the row exactly, so that nothing is past its end. A row stays as it was
// read, in half the registers if its values have 2 bytes, so that more threads fit a
// multiprocessor; the sum of two rows is floats.
template <class T, auto C, bool has_residual = false>
struct RowSlots {
  static constexpr int kStep = C.group * C.vector;
  struct Floats {
    float values[C.vector];
  };
  Select<has_residual, Floats, Packed<T, C.vector>> held[C.slots];
  int cols;

  TC_DEVICE static int column(int slot) {
    return int(threadIdx.x % C.group) * C.vector + slot * kStep;
  }
  TC_DEVICE bool has(int slot) const {
    if constexpr (C.whole) return true;
    return column(slot) < cols;
  }

  // x, or x + residual, of which each group of the grid loads a row. What is past the row is 0. All
  // loads are issued before the first is used.
  TC_DEVICE void load(const T* x, const T* residual, int columns) {
    const uint64_t policy =
        stream_policy_of_blocks<C.threads * C.vector * C.slots * int64_t(sizeof(T))>();
    cols = columns;
    if constexpr (has_residual) {
      Packed<T, C.vector> a[C.slots], b[C.slots];
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        if constexpr (!C.whole) a[s] = b[s] = {};
        if (!has(s)) continue;
        a[s] = Packed<T, C.vector>::load_streamed(x + column(s), policy);
        b[s] = Packed<T, C.vector>::load_streamed(residual + column(s), policy);
      }
#pragma unroll
      for (int s = 0; s < C.slots; ++s) hold(s, a[s], b[s]);
    } else {
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        if constexpr (!C.whole) held[s] = {};
        if (has(s)) held[s] = Packed<T, C.vector>::load_streamed(x + column(s), policy);
      }
    }
  }
  TC_DEVICE void hold(int slot, const Packed<T, C.vector>& x, const Packed<T, C.vector>& residual) {
    if constexpr (has_residual) {
      float r[C.vector];
      to_floats(held[slot].values, x);
      to_floats(r, residual);
      for (int e = 0; e < C.vector; ++e) held[slot].values[e] += r[e];
    } else {
      held[slot] = x;
    }
  }

  TC_DEVICE void floats(int slot, float (&to)[C.vector]) const {
    if constexpr (has_residual)
      for (int e = 0; e < C.vector; ++e) to[e] = held[slot].values[e];
    else
      to_floats(to, held[slot]);
  }

  // f(column, values) of each slot that the row has. own_sum() is this walk written out: a function
  // more around f costs a compiler what 20 instructions do.
  template <class F>
  TC_DEVICE void each(const F& f) const {
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      if (!has(s)) continue;
      float h[C.vector];
      floats(s, h);
      f(column(s), h);
    }
  }

  // The sum of f(h) over what the calling thread holds, by slots first, so that their additions do
  // not wait in one chain.
  template <class F>
  TC_DEVICE float own_sum(const F& f) const {
    float total = 0;
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      if (!has(s)) continue;
      float h[C.vector];
      floats(s, h);
      float part = f(h[0]);
      for (int e = 1; e < C.vector; ++e) part += f(h[e]);
      total += part;
    }
    return total;
  }
  // The same over the row. `scratch` serves this one sum of the kernel.
  template <class F>
  TC_DEVICE float sum(BlockReduce<float>& scratch, const F& f) const {
    return group_reduce_once<C.group>(scratch, own_sum(f), Sum());
  }
};

}  // namespace tensorcraft
