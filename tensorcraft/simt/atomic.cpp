// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/simt/cluster.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

// Atomics of real threads: the blocks of a grid run in parallel.
namespace tensorcraft::simt {
namespace {

template <class T>
void check(const T* address, const SourceLine& line) {
  if (reinterpret_cast<uintptr_t>(address) % sizeof(T) != 0)
    Cluster::current()->fault(
        join("atomic: the address is not at a multiple of ", sizeof(T), " bytes"), &line);
  if (Shadow* s = Cluster::current()->shadow())
    s->atomic(address, sizeof(T), {.wrapper = "atomic"});
}

// Either half of x and y, added and rounded in type T. float holds the sum of two 16-bit floats
// closely enough that rounding it again is rounding once.
template <class T>
uint32_t add_pairs(uint32_t x, uint32_t y) {
  const auto half = [&](int shift) {
    const float a = float(T::from_bits(uint16_t(x >> shift)));
    const float b = float(T::from_bits(uint16_t(y >> shift)));
    return uint32_t(T(a + b).bits) << shift;
  };
  return half(0) | half(16);
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// In global memory subnormal operands and results are zero.
uint32_t add_floats(uint32_t old, uint32_t x, bool is_global) {
  const float a = bit_cast<float>(old), b = bit_cast<float>(x);
  const float sum = is_global ? flushed(flushed(a) + flushed(b)) : a + b;
  return sum != sum ? 0x7fffffffu : bit_cast<uint32_t>(sum);
}

uint32_t changed(Atomic op, uint32_t old, uint32_t x, bool is_global) {
  switch (op) {
    case Atomic::add_u32:
      return old + x;
    case Atomic::add_f32:
      return add_floats(old, x, is_global);
    case Atomic::add_f16x2:
      return add_pairs<f16>(old, x);
    case Atomic::add_bf16x2:
      return add_pairs<bf16>(old, x);
    case Atomic::min_s32:
      return uint32_t(std::min(int32_t(old), int32_t(x)));
    case Atomic::max_s32:
      return uint32_t(std::max(int32_t(old), int32_t(x)));
    case Atomic::min_u32:
      return std::min(old, x);
    case Atomic::max_u32:
      return std::max(old, x);
    case Atomic::increment_u32:
      return old >= x ? 0 : old + 1;
    case Atomic::exchange_u32:
      return x;
  }
  return old;
}

template <class T>
T compare_and_swap(T* address, T expected, T value, const SourceLine& line) {
  check(address, line);
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}

}  // namespace

uint32_t atomic(Atomic op, uint32_t* address, uint32_t value, const SourceLine& line) {
  check(address, line);
  Cluster& cluster = *Cluster::current();
  const auto holds = [&](const Block& b) {
    return cluster.is_shared(b, address, sizeof(*address));
  };
  const bool is_global = std::none_of(cluster.blocks().begin(), cluster.blocks().end(), holds);
  const bool is_pair = op == Atomic::add_f16x2 || op == Atomic::add_bf16x2;
  if (is_pair && !is_global && !holds(*cluster.self().block))
    cluster.fault("atomic: pairs are not added in another block's shared memory", &line);
  const std::atomic_ref<uint32_t> memory(*address);
  uint32_t old = memory.load(std::memory_order_relaxed);
  while (!memory.compare_exchange_weak(old, changed(op, old, value, is_global),
                                       std::memory_order_relaxed)) {
  }
  return old;
}

uint64_t atomic_add_u64(uint64_t* address, uint64_t value, const SourceLine& line) {
  check(address, line);
  return std::atomic_ref<uint64_t>(*address).fetch_add(value, std::memory_order_relaxed);
}

uint32_t atomic_cas_u32(uint32_t* address, uint32_t expected, uint32_t value,
                        const SourceLine& line) {
  return compare_and_swap(address, expected, value, line);
}
uint64_t atomic_cas_u64(uint64_t* address, uint64_t expected, uint64_t value,
                        const SourceLine& line) {
  return compare_and_swap(address, expected, value, line);
}

}  // namespace tensorcraft::simt
