// SPDX-License-Identifier: Apache-2.0
#pragma once
// Codes of 8 bits as what tensor cores multiply: 16-bit floats of type T, which hold each code.
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/prmt.cuh"

namespace tensorcraft {

namespace detail {

// Two codes as a word of T.
TC_DEVICE uint32_t code_pair(uint32_t codes, e4m3, f16) {
  return ptx::cvt_rn_f16x2_e4m3x2(uint16_t(codes));
}
// An e5m2 is the upper byte of an f16, also if it is infinite or NaN.
TC_DEVICE uint32_t code_pair(uint32_t codes, e5m2, f16) { return ptx::prmt_b32(codes, 0, 0x1404); }
template <class Float8>
TC_DEVICE uint32_t code_pair(uint32_t codes, Float8 type, bf16) {
  const uint32_t halves = code_pair(codes, type, f16{});
  return pack_pair(half_of(halves, false, f16{}), half_of(halves, true, f16{}), bf16{});
}
// Bytes in the mantissas of 1024, whose neighbours are 1 apart, stand for codes + 128.
TC_DEVICE uint32_t shifted_pair(uint32_t shifted) {
  constexpr uint32_t kOne = 0x3c003c00, kMinus1152 = 0xe480e480;
  return fma_pair(shifted, kOne, kMinus1152, f16{});
}
TC_DEVICE uint32_t code_pair(uint32_t codes, int8_t, f16) {
  return shifted_pair(ptx::prmt_b32(codes ^ 0x8080, 0x64, 0x4140));
}
// In the mantissas of 128 there is room for 7 bits; the sign's is worth -128.
TC_DEVICE uint32_t code_pair(uint32_t codes, int8_t, bf16) {
  constexpr uint32_t k128 = 0x43004300, kMinusOne = 0xbf80bf80;
  const uint32_t bytes = ptx::prmt_b32(codes, 0, 0x4140);
  return fma_pair(k128 | (bytes & 0x00800080), kMinusOne, k128 | (bytes & 0x007f007f), bf16{});
}

// Four codes as two words of f16.
TC_DEVICE void code_pairs(uint32_t* to, uint32_t codes, int8_t) {
  const uint32_t shifted = codes ^ 0x80808080u;
  to[0] = shifted_pair(ptx::prmt_b32(shifted, 0x64, 0x4140));
  to[1] = shifted_pair(ptx::prmt_b32(shifted, 0x64, 0x4342));
}
TC_DEVICE void code_pairs(uint32_t* to, uint32_t codes, e5m2) {
  to[0] = ptx::prmt_b32(codes, 0, 0x1404);
  to[1] = ptx::prmt_b32(codes, 0, 0x3424);
}

}  // namespace detail

// kCount neighbours, 2 to 8, as words of T, from one access.
template <class T, int kCount = 8, class Code>
TC_DEVICE AlignedVector<uint32_t, kCount / 2> load_words(const Code* from) {
  AlignedVector<uint32_t, kCount / 2> words;
  if constexpr (sizeof(Code) == 2) {
    words = load_vector<kCount / 2>(reinterpret_cast<const uint32_t*>(from));
  } else if constexpr (!kAreSame<Code, e4m3> && kAreSame<T, f16> && kCount % 4 == 0) {
    const auto codes = load_vector<kCount / 4>(reinterpret_cast<const uint32_t*>(from));
    for (int i = 0; i < kCount / 4; ++i) detail::code_pairs(&words[2 * i], codes[i], Code{});
  } else {
    const auto codes = load_vector<kCount / 2>(reinterpret_cast<const uint16_t*>(from));
    for (int i = 0; i < kCount / 2; ++i) words[i] = detail::code_pair(codes[i], Code{}, T{});
  }
  return words;
}

}  // namespace tensorcraft
