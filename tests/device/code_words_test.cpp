// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/code_words.cuh"

#include <gtest/gtest.h>

#include <cstring>

namespace tensorcraft {
namespace {

// Every code, the infinite ones and NaNs too, as the T that it is.
template <class T, int kCount, class Code>
void expect_words_of_every_code() {
  alignas(16) Code codes[256];
  for (int i = 0; i < 256; ++i) codes[i] = bit_cast<Code>(uint8_t(i));
  for (int i = 0; i < 256; i += kCount) {
    const auto words = load_words<T, kCount>(codes + i);
    T found[kCount];
    std::memcpy(found, &words, sizeof(found));
    for (int e = 0; e < kCount; ++e) {
      const float got = float(found[e]), want = float(codes[i + e]);
      ASSERT_TRUE(got == want || (got != got && want != want)) << i + e << ": " << got;
    }
  }
}
TEST(CodeWords, AreTheirCodes) {
  expect_words_of_every_code<f16, 8, e4m3>();
  expect_words_of_every_code<bf16, 8, e4m3>();
  expect_words_of_every_code<f16, 8, e5m2>();
  expect_words_of_every_code<f16, 2, e5m2>();
  expect_words_of_every_code<bf16, 8, e5m2>();
  expect_words_of_every_code<f16, 8, int8_t>();
  expect_words_of_every_code<f16, 2, int8_t>();
  expect_words_of_every_code<bf16, 8, int8_t>();
}

}  // namespace
}  // namespace tensorcraft
