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

// 8 neighbours as 4 words of T, from an access of 16 bytes or, of codes, 8.
template <class T, class Code>
TC_DEVICE Vec4<uint32_t> load_words(const Code* from) {
  if constexpr (sizeof(Code) == 2) {
    return load_vector<4>(reinterpret_cast<const uint32_t*>(from));
  } else {
    const auto codes = load_vector<2>(reinterpret_cast<const uint32_t*>(from));
    Vec4<uint32_t> words;
    for (int i = 0; i < 4; ++i)
      words[i] = detail::code_pair(codes[i / 2] >> (i % 2 * 16) & 0xffff, Code{}, T{});
    return words;
  }
}

}  // namespace tensorcraft
