// SPDX-License-Identifier: Apache-2.0
#pragma once
// Codes of 8 bits as what tensor cores multiply: 16-bit floats of type T, which hold each code.
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/packed.cuh"

namespace tensorcraft {

namespace detail {

// Two codes as a word of T.
TC_DEVICE uint32_t code_pair(uint32_t codes, e4m3, f16) {
  return ptx::cvt_rn_f16x2_e4m3x2(uint16_t(codes));
}
TC_DEVICE uint32_t code_pair(uint32_t codes, e4m3, bf16) {
  const uint32_t halves = ptx::cvt_rn_f16x2_e4m3x2(uint16_t(codes));
  return pack_pair(half_of(halves, false, f16{}), half_of(halves, true, f16{}), bf16{});
}
template <class T>
TC_DEVICE uint32_t code_pair(uint32_t codes, int8_t, T) {
  return pack_pair(float(int8_t(codes & 0xff)), float(int8_t(codes >> 8 & 0xff)), T{});
}

}  // namespace detail

// kCount neighbours, 2 to 8, as words of T, from one access.
template <class T, int kCount = 8, class Code>
TC_DEVICE AlignedVector<uint32_t, kCount / 2> load_words(const Code* from) {
  AlignedVector<uint32_t, kCount / 2> words;
  if constexpr (sizeof(Code) == 2) {
    words = load_vector<kCount / 2>(reinterpret_cast<const uint32_t*>(from));
  } else {
    const auto codes = load_vector<kCount / 2>(reinterpret_cast<const uint16_t*>(from));
    for (int i = 0; i < kCount / 2; ++i) words[i] = detail::code_pair(codes[i], Code{}, T{});
  }
  return words;
}

}  // namespace tensorcraft
