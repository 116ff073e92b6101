// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

namespace detail {
template <class T, int N>
TC_HOST_DEVICE constexpr int vector_alignment() {
  static_assert(N > 0 && (N & (N - 1)) == 0,
                "AlignedVector<T, N>: N must be a power of two, such as 2, 4 or 8");
  static_assert((sizeof(T) & (sizeof(T) - 1)) == 0,
                "AlignedVector<T, N>: sizeof(T) must be a power of two");
  return N > 0 && (N & (N - 1)) == 0 ? int(sizeof(T)) * N : int(alignof(T));
}
}  // namespace detail

// N values that one memory instruction can move: aligned to their size.
template <class T, int N>
struct alignas(detail::vector_alignment<T, N>()) AlignedVector {
  T values[N];

  TC_HOST_DEVICE constexpr T& operator[](int i) { return values[i]; }
  TC_HOST_DEVICE constexpr const T& operator[](int i) const { return values[i]; }
  TC_HOST_DEVICE static constexpr int size() { return N; }
};

template <class T>
using Vec2 = AlignedVector<T, 2>;
template <class T>
using Vec4 = AlignedVector<T, 4>;
template <class T>
using Vec8 = AlignedVector<T, 8>;

// The widest access of one thread, and how many T it holds.
inline constexpr int kVectorBytes = 16;
template <class T>
inline constexpr int kVectorSize = kVectorBytes / int(sizeof(T));

// One access of N values at an address that is a multiple of their size in bytes.
template <int N, class T>
TC_HOST_DEVICE AlignedVector<T, N> load_vector(const T* from) {
  static_assert(sizeof(T) * N <= kVectorBytes, "one thread moves at most 16 bytes at once");
  return *reinterpret_cast<const AlignedVector<T, N>*>(from);
}

template <int N, class T>
TC_HOST_DEVICE void store_vector(T* to, const AlignedVector<T, N>& v) {
  static_assert(sizeof(T) * N <= kVectorBytes, "one thread moves at most 16 bytes at once");
  *reinterpret_cast<AlignedVector<T, N>*>(to) = v;
}

}  // namespace tensorcraft
