// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// How weights of 4 bits lie in memory. Of 8 neighbours along k, which are a word of 4 bytes, the
// even ones are in the lower half and the odd ones in the upper: one mask takes out two neighbours,
// one in each half. Of 128 neighbours word 4 t + j has those from 32 j + 8 t on: 16 bytes have 8 of
// each 32, so the four lanes that share a row of a fragment have a group of 32 at once. What is
// left behind the last 128 has its words in order.
namespace tensorcraft {

inline constexpr int kCodesOfBlock = 128;

// Where element i of a row of k codes is: its byte, and its shift in that.
struct CodePlace {
  int64_t byte;
  int shift;
};
TC_HOST_DEVICE constexpr CodePlace code_place(int64_t i, int64_t k) {
  const int64_t block = i / kCodesOfBlock * kCodesOfBlock;
  const int in_block = int(i - block) / 8;  // words: 4 j + t in the order of k
  const int word = block + kCodesOfBlock <= k ? in_block % 4 * 4 + in_block / 4 : in_block;
  const int nibble = int(i % 2) * 4 + int(i % 8) / 2;
  return {block / 2 + word * 4 + nibble / 2, nibble % 2 * 4};
}

// Sets a code of a row of k codes; it was 0.
TC_HOST_DEVICE void set_code(uint8_t* row, int64_t i, int64_t k, int code) {
  const CodePlace place = code_place(i, k);
  row[place.byte] = uint8_t(row[place.byte] | code << place.shift);
}

// The eight values of e2m1 without their sign, which is bit 3 of a code: 0, 0.5, 1, 1.5, 2, 3,
// 4, 6.
TC_HOST_DEVICE float e2m1_value(uint32_t code) {
  // Two bits of exponent and one of mantissa where float32 has its own: 2^126 is what the biases
  // differ by, and without an exponent both formats are the mantissa alone.
  return bit_cast<float>((code & 8) << 28 | (code & 7) << 22) * 0x1p126f;
}

// The value of a scale of 8 bits that is an exponent: 2^(bits - 127), NaN for 255.
TC_HOST_DEVICE float e8m0_value(uint8_t bits) {
  if (bits == 255) return bit_cast<float>(0x7fc00000u);
  return bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t(bits) << 23);
}

}  // namespace tensorcraft
