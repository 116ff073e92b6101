// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a row has as many lanes as its mean length can feed, so a warp has 32 / group rows:
//   lanes at work = mean / (group * ceil(mean / group)), not mean / 32.
// A lane asks for four elements at once, so a row of up to 4 group elements waits for memory three
// times, whatever its length: for its ends, for columns and elements, and for x.
#include "tensorcraft/ops/spmv/element.cuh"

namespace tensorcraft::kernel::spmv {

struct SubWarp {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    constexpr int kCount = 4;
    const int lane = int(threadIdx.x) % C.group;
    const int64_t row = int64_t(blockIdx.x) * (C.threads / C.group) + threadIdx.x / C.group;
    const bool exists = row < p.a.rows;  // a thread without a row takes part in shuffles
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    const int64_t end = exists ? int64_t(row_begin<I>(p.a, row + 1)) : 0;
    LongTotal own(semiring);
    for (int64_t k = exists ? int64_t(row_begin<I>(p.a, row)) + lane : 0; k < end;
         k += kCount * C.group) {
      Elements<T, I, kCount> elements;
      elements.load(p, k, C.group, end);
      float values[kCount];
      for (int i = 0; i < kCount; ++i) values[i] = elements.value(semiring, i);
      float some = values[0];
      for (int i = 1; i < kCount; ++i) some = semiring.reduce(some, values[i]);
      own.add(some);
    }
    const float total = reduce_lanes<C.group>(semiring, own.value());
    if (exists && lane == 0) store<T>(p, row, total);
  }
};

}  // namespace tensorcraft::kernel::spmv
