// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/ptx/math.cuh"
#include "tensorcraft/device/streamed.cuh"
#include "tensorcraft/device/vec.cuh"

namespace tensorcraft {

namespace detail {
TC_HOST_DEVICE float half_of(uint32_t word, bool high, bf16) {
  return bit_cast<float>(high ? word & 0xffff0000u : word << 16);
}
TC_HOST_DEVICE float half_of(uint32_t word, bool high, f16) {
  return ptx::cvt_f32_f16(uint16_t(high ? word >> 16 : word & 0xffffu));
}
// Element i of four; two 8-bit floats are converted at once.
TC_HOST_DEVICE float quarter_of(uint32_t word, int i, e4m3) {
  return half_of(ptx::cvt_rn_f16x2_e4m3x2(uint16_t(word >> i / 2 * 16)), i % 2 != 0, f16{});
}
TC_HOST_DEVICE float quarter_of(uint32_t word, int i, e5m2) {
  return ptx::cvt_f32_f16(uint16_t(word >> i * 8 << 8));
}
TC_HOST_DEVICE float quarter_of(uint32_t word, int i, int8_t) {
  return float(int8_t(word >> i * 8));
}
TC_HOST_DEVICE float quarter_of(uint32_t word, int i, uint8_t) {
  return float(uint8_t(word >> i * 8));
}
}  // namespace detail

// N neighbours as they lie in memory, in 32-bit words if they fill any. A compiler takes an array
// of 2-byte values apart, into a register each; words stay whole, and two values are converted at
// once.
template <class T, int N>
struct alignas(sizeof(T) * N) Packed {
  static_assert(sizeof(T) * N <= kVectorBytes && (N & (N - 1)) == 0);
  using Word = Select<sizeof(T) * N % 4 == 0, uint32_t, T>;
  Word words[sizeof(T) * N / sizeof(Word)];

  // One of them as a float. In a loop that is unrolled this is to_floats(), and one loop less.
  TC_HOST_DEVICE float operator[](int i) const {
    if constexpr (sizeof(T) * N < 4)
      return float(words[i]);
    else if constexpr (sizeof(T) == 4)
      return bit_cast<float>(words[i]);
    else if constexpr (sizeof(T) == 1)
      return detail::quarter_of(words[i / 4], i % 4, T{});
    else
      return detail::half_of(words[i / 2], i % 2 != 0, T{});
  }

  TC_HOST_DEVICE static Packed load(const T* from) {
    return *reinterpret_cast<const Packed*>(from);
  }
  TC_DEVICE static Packed load_streamed(const T* from, uint64_t policy) {
    return bit_cast<Packed>(tensorcraft::load_streamed<N>(from, policy));
  }
  TC_HOST_DEVICE void store(T* to) const { *reinterpret_cast<Packed*>(to) = *this; }
};

// Two floats as the halves of a word.
TC_HOST_DEVICE uint32_t pack_pair(float low, float high, bf16) {
  return ptx::cvt_rn_bf16x2_f32(high, low);
}
TC_HOST_DEVICE uint32_t pack_pair(float low, float high, f16) {
  return ptx::cvt_rn_f16x2_f32(high, low);
}

// a b + c of each half of three words, rounded once.
TC_DEVICE uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c, bf16) {
  return ptx::fma_rn_bf16x2(a, b, c);
}
TC_DEVICE uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c, f16) {
  return ptx::fma_rn_f16x2(a, b, c);
}

// The larger of each half of two words; NaN if either is NaN.
TC_DEVICE uint32_t max_pair(uint32_t a, uint32_t b, bf16) { return ptx::max_nan_bf16x2(a, b); }
TC_DEVICE uint32_t max_pair(uint32_t a, uint32_t b, f16) { return ptx::max_nan_f16x2(a, b); }

// N floats; of f16 and bf16 the values are those of single conversions, bit for bit.
template <class T, int N>
TC_HOST_DEVICE void to_floats(float* to, const Packed<T, N>& from) {
  if constexpr (sizeof(T) * N < 4) {
    for (int i = 0; i < N; ++i) to[i] = float(from.words[i]);
  } else if constexpr (sizeof(T) == 4) {
    for (int i = 0; i < N; ++i) to[i] = bit_cast<float>(from.words[i]);
  } else if constexpr (sizeof(T) == 1) {
    for (int i = 0; i < N; ++i) to[i] = from[i];
  } else {
    for (int i = 0; i < N / 2; ++i) {
      to[2 * i] = detail::half_of(from.words[i], false, T{});
      to[2 * i + 1] = detail::half_of(from.words[i], true, T{});
    }
  }
}

template <class T, int N>
TC_HOST_DEVICE Packed<T, N> from_floats(const float* from) {
  Packed<T, N> to;
  if constexpr (sizeof(T) * N < 4) {
    for (int i = 0; i < N; ++i) to.words[i] = T(from[i]);
  } else if constexpr (sizeof(T) == 4) {
    for (int i = 0; i < N; ++i) to.words[i] = bit_cast<uint32_t>(from[i]);
  } else {
    for (int i = 0; i < N / 2; ++i) to.words[i] = pack_pair(from[2 * i], from[2 * i + 1], T{});
  }
  return to;
}

}  // namespace tensorcraft
