// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/shared.cuh"

namespace tensorcraft::test {

// A block reads its own words of `in` and writes its own words of `out`.
struct Params {
  const uint32_t* in;
  uint32_t* out;
  int in_words, out_words;
};

TC_DEVICE const uint32_t* block_in(const Params& p) { return p.in + blockIdx.x * p.in_words; }
TC_DEVICE uint32_t* block_out(const Params& p) { return p.out + blockIdx.x * p.out_words; }

}  // namespace tensorcraft::test
