// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/simt/bulk.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

namespace tensorcraft::simt {
namespace {

// Blocks on other OS threads reduce into the same memory.
std::mutex& reducing() {
  static constinit FirstMade<ForkSafeMutex> one;
  return *one;
}

template <class T>
T combine_integers(Reduce op, T a, T b) {
  switch (op) {
    case Reduce::add:
      return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    case Reduce::min:
      return std::min(a, b);
    case Reduce::max:
      return std::max(a, b);
    case Reduce::inc:
      return a >= b ? T(0) : T(a + 1);
    case Reduce::dec:
      return a == 0 || a > b ? b : T(a - 1);
    case Reduce::bit_and:
      return a & b;
    case Reduce::bit_or:
      return a | b;
    case Reduce::bit_xor:
      return a ^ b;
  }
  return a;
}

// Subnormals are kept, other than by atomics on global memory.
float add(float a, float b) {
  const float sum = a + b;
  return sum != sum ? bit_cast<float>(0x7fffffffu) : sum;
}
double add(double a, double b) { return a + b; }

// min and max give the number if the other is a NaN, and put -0 below 0.
float combine_halves(Reduce op, float a, float b) {
  if (op == Reduce::add) return a + b;
  if (a != a) return b;
  if (b != b) return a;
  const bool first = a == b ? std::signbit(a) && !std::signbit(b) : a < b;
  return first == (op == Reduce::min) ? a : b;
}

template <class T, class F>
void each(void* to, const void* from, size_t bytes, const F& combine) {
  for (size_t i = 0; i < bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, static_cast<std::byte*>(to) + i, sizeof(T));
    std::memcpy(&b, static_cast<const std::byte*>(from) + i, sizeof(T));
    const T y = combine(a, b);
    std::memcpy(static_cast<std::byte*>(to) + i, &y, sizeof(T));
  }
}

template <class T>
void integers(Reduce op, void* to, const void* from, size_t bytes) {
  each<T>(to, from, bytes, [op](T a, T b) { return combine_integers(op, a, b); });
}
template <class T>
void floats(void* to, const void* from, size_t bytes) {
  each<T>(to, from, bytes, [](T a, T b) { return add(a, b); });
}
template <class T>
void halves(Reduce op, void* to, const void* from, size_t bytes) {
  each<T>(to, from, bytes, [op](T a, T b) { return T(combine_halves(op, float(a), float(b))); });
}

}  // namespace

bool can_reduce(Reduce op, ReduceType type) {
  const bool bits = op == Reduce::bit_and || op == Reduce::bit_or || op == Reduce::bit_xor;
  const bool counts = op == Reduce::inc || op == Reduce::dec;
  switch (type) {
    case ReduceType::b32:
    case ReduceType::b64:
      return bits;
    case ReduceType::u32:
      return true;
    case ReduceType::s32:
    case ReduceType::u64:
    case ReduceType::s64:
      return !counts;
    case ReduceType::f16:
    case ReduceType::bf16:
      return !bits && !counts;
    case ReduceType::f32:
    case ReduceType::f64:
      return op == Reduce::add;
  }
  return false;
}

void reduce(Reduce op, ReduceType type, void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(reducing());
  switch (type) {
    case ReduceType::u32:
    case ReduceType::b32:
      return integers<uint32_t>(op, to, from, bytes);
    case ReduceType::s32:
      return integers<int32_t>(op, to, from, bytes);
    case ReduceType::u64:
    case ReduceType::b64:
      return integers<uint64_t>(op, to, from, bytes);
    case ReduceType::s64:
      return integers<int64_t>(op, to, from, bytes);
    case ReduceType::f16:
      return halves<f16>(op, to, from, bytes);
    case ReduceType::bf16:
      return halves<bf16>(op, to, from, bytes);
    case ReduceType::f32:
      return floats<float>(to, from, bytes);
    case ReduceType::f64:
      return floats<double>(to, from, bytes);
  }
}

}  // namespace tensorcraft::simt
