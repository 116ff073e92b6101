// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/ptx/atomic.cuh"
#include "tensorcraft/device/vec.cuh"
#if !TC_PTX
#include "tensorcraft/device/host.h"
#endif

// Atomic read, change and write of global or shared memory, relaxed, seen by the whole GPU. All
// return the old value. The address is a multiple of the value's size. Sums of floats depend on the
// order in which threads come.
namespace tensorcraft {

TC_DEVICE int32_t atomic_add(int32_t* address, int32_t x) {
#if TC_PTX
  return ::atomicAdd(address, x);
#else
  return int32_t(
      simt::atomic(simt::Atomic::add_u32, reinterpret_cast<uint32_t*>(address), uint32_t(x)));
#endif
}
TC_DEVICE uint32_t atomic_add(uint32_t* address, uint32_t x) {
#if TC_PTX
  return ::atomicAdd(address, x);
#else
  return simt::atomic(simt::Atomic::add_u32, address, x);
#endif
}
// NVRTC and nvcc spell uint64_t differently, CUDA takes one of them.
TC_DEVICE uint64_t atomic_add(uint64_t* address, uint64_t x) {
#if TC_PTX
  return ::atomicAdd(reinterpret_cast<unsigned long long*>(address), x);
#else
  return simt::atomic_add_u64(address, x);
#endif
}
// In global memory subnormal operands and sums are zero.
TC_DEVICE float atomic_add(float* address, float x) {
#if TC_PTX
  return ::atomicAdd(address, x);
#else
  return bit_cast<float>(simt::atomic(simt::Atomic::add_f32, reinterpret_cast<uint32_t*>(address),
                                      bit_cast<uint32_t>(x)));
#endif
}
// Each half by itself is one atomic addition, rounded to nearest even. Not for shared memory of
// another block of the cluster: an H200 gives wrong sums there.
TC_DEVICE Vec2<f16> atomic_add(Vec2<f16>* address, Vec2<f16> x) {
#if TC_PTX
  return bit_cast<Vec2<f16>>(
      ptx::atom_add_noftz_f16x2(reinterpret_cast<uint32_t*>(address), bit_cast<uint32_t>(x)));
#else
  return bit_cast<Vec2<f16>>(simt::atomic(
      simt::Atomic::add_f16x2, reinterpret_cast<uint32_t*>(address), bit_cast<uint32_t>(x)));
#endif
}
// As for halves; sm_90.
TC_DEVICE Vec2<bf16> atomic_add(Vec2<bf16>* address, Vec2<bf16> x) {
#if TC_PTX
  return bit_cast<Vec2<bf16>>(
      ptx::atom_add_noftz_bf16x2(reinterpret_cast<uint32_t*>(address), bit_cast<uint32_t>(x)));
#else
  return bit_cast<Vec2<bf16>>(simt::atomic(
      simt::Atomic::add_bf16x2, reinterpret_cast<uint32_t*>(address), bit_cast<uint32_t>(x)));
#endif
}

TC_DEVICE int32_t atomic_min(int32_t* address, int32_t x) {
#if TC_PTX
  return ::atomicMin(address, x);
#else
  return int32_t(
      simt::atomic(simt::Atomic::min_s32, reinterpret_cast<uint32_t*>(address), uint32_t(x)));
#endif
}
TC_DEVICE int32_t atomic_max(int32_t* address, int32_t x) {
#if TC_PTX
  return ::atomicMax(address, x);
#else
  return int32_t(
      simt::atomic(simt::Atomic::max_s32, reinterpret_cast<uint32_t*>(address), uint32_t(x)));
#endif
}
TC_DEVICE uint32_t atomic_min(uint32_t* address, uint32_t x) {
#if TC_PTX
  return ::atomicMin(address, x);
#else
  return simt::atomic(simt::Atomic::min_u32, address, x);
#endif
}
TC_DEVICE uint32_t atomic_max(uint32_t* address, uint32_t x) {
#if TC_PTX
  return ::atomicMax(address, x);
#else
  return simt::atomic(simt::Atomic::max_u32, address, x);
#endif
}
// One more, and 0 after `last`.
TC_DEVICE uint32_t atomic_increment(uint32_t* address, uint32_t last) {
  return ptx::atom_inc_u32(address, last);
}
TC_DEVICE uint32_t atomic_exchange(uint32_t* address, uint32_t x) {
#if TC_PTX
  return ::atomicExch(address, x);
#else
  return simt::atomic(simt::Atomic::exchange_u32, address, x);
#endif
}
// Writes x if the memory holds `expected`.
TC_DEVICE uint32_t atomic_cas(uint32_t* address, uint32_t expected, uint32_t x) {
#if TC_PTX
  return ::atomicCAS(address, expected, x);
#else
  return simt::atomic_cas_u32(address, expected, x);
#endif
}
TC_DEVICE uint64_t atomic_cas(uint64_t* address, uint64_t expected, uint64_t x) {
#if TC_PTX
  return ::atomicCAS(reinterpret_cast<unsigned long long*>(address), expected, x);
#else
  return simt::atomic_cas_u64(address, expected, x);
#endif
}

}  // namespace tensorcraft
