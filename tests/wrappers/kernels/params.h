// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tensor_map.h"

namespace tensorcraft::test {

// A block reads its own words of `in` and writes its own words of `out`; if a case has clusters, a
// cluster does.
struct Params {
  TensorMap map;  // of the case's tensor
  const uint32_t* in;
  uint32_t* out;
  int in_words, out_words;
};

TC_DEVICE const uint32_t* block_in(const Params& p) { return p.in + blockIdx.x * p.in_words; }
TC_DEVICE uint32_t* block_out(const Params& p) { return p.out + blockIdx.x * p.out_words; }

// For clusters of kBlocks along x.
template <int kBlocks>
TC_DEVICE const uint32_t* cluster_in(const Params& p) {
  return p.in + blockIdx.x / kBlocks * p.in_words;
}
template <int kBlocks>
TC_DEVICE uint32_t* cluster_out(const Params& p) {
  return p.out + blockIdx.x / kBlocks * p.out_words;
}

}  // namespace tensorcraft::test
