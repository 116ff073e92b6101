// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA's own words for a plain C++ compiler, as declarations: tensorcraft/simt/ defines them. A
// rung reads the same on the host as on a GPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorcraft {

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

// All threads of a block share one OS thread, so thread_local means per block; the emulator sets
// threadIdx at each switch.
extern thread_local constinit Index3 threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);

namespace simt {
int lane();
// The value that lane `source` of the warp passed; every lane of mask must call.
uint64_t shuffle(unsigned mask, uint64_t value, int source);
// Bit i is set where lane i of mask passed true.
unsigned ballot(unsigned mask, bool predicate);
// The warp's matrix instructions; registers as device/ptx/ldmatrix.cuh and mma.cuh describe them.
void ldmatrix_x4(uint32_t (&to)[4], const void* row, bool transposed);
void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4]);
void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4]);
// tf32 operands are floats whose low 13 bits are 0.
void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4]);
// The calling thread's copies from global to shared memory; device/ptx/cp_async.cuh has the rules.
void cp_async(void* shared, const void* global, int size, int bytes);
void cp_async_commit();
void cp_async_wait_group(int pending);
void* static_shared(const void* key, size_t bytes, size_t align);
void* dynamic_shared(size_t bytes);

template <class T>
T shuffle_value(unsigned mask, T x, int source) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof(T));
  bits = shuffle(mask, bits, source);
  std::memcpy(&x, &bits, sizeof(T));
  return x;
}
}  // namespace simt

// A source outside the warp, or outside the lane's segment of `width`, gives the lane its own
// value.
template <class T>
T __shfl_sync(unsigned mask, T x, int source, int width = 32) {
  const int segment = simt::lane() & ~(width - 1);
  return simt::shuffle_value(mask, x, segment + (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32) {
  const int lane = simt::lane(), source = lane ^ lanes;
  return simt::shuffle_value(mask, x, source < (lane & ~(width - 1)) + width ? source : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned lanes, int width = 32) {
  const int lane = simt::lane(), source = lane + int(lanes);
  return simt::shuffle_value(mask, x, source < (lane & ~(width - 1)) + width ? source : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned lanes, int width = 32) {
  const int lane = simt::lane(), source = lane - int(lanes);
  return simt::shuffle_value(mask, x, source >= (lane & ~(width - 1)) ? source : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return simt::ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return simt::ballot(mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return simt::ballot(mask, predicate == 0) == 0;
}

}  // namespace tensorcraft
