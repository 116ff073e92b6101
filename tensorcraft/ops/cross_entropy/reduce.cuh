// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second launch of a sum or mean: one block adds the losses of all rows, always in one order,
// and counts those that are not -0, which marks a row that was ignored (a loss is never negative).
// It may start while the losses are still computed, which hides its launch.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/cross_entropy/params.h"

namespace tensorcraft::kernel::cross_entropy {

struct ReduceShared {
  BlockReduce<float> sums;
  BlockReduce<int> counts;
};

TC_DEVICE void add_loss(float loss, float& sum, int& count) {
  sum += loss;
  count += bit_cast<uint32_t>(loss) != 0x80000000u;
}

template <ReduceConfig C>
TC_DEVICE void reduce(const ReduceParams& p) {
  auto& shared = static_shared<ReduceShared>();
  float sum = 0;
  int count = 0;
  const int64_t whole = p.rows / 4 * 4;
#pragma unroll 4  // accesses in flight
  for (int64_t i = int64_t(threadIdx.x) * 4; i < whole; i += C.threads * 4) {
    const auto losses = load_vector<4>(p.losses + i);
    for (int e = 0; e < 4; ++e) add_loss(losses[e], sum, count);
  }
  if (whole + threadIdx.x < p.rows) add_loss(p.losses[whole + threadIdx.x], sum, count);
  sum = block_reduce_once(shared.sums, sum, Sum());
  count = block_reduce_once(shared.counts, count, Sum());
  if (threadIdx.x == 0) *p.out = p.mean ? sum / float(count) : sum;
}

}  // namespace tensorcraft::kernel::cross_entropy
