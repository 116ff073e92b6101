// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the output: it looks through all indices of its line and takes the
// updates that name its place in their order. No other thread writes there, so results repeat to
// the bit; the price is indices read = size * num_updates for each line.
#include "tensorcraft/ops/scatter/update.cuh"

namespace tensorcraft::kernel::scatter {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.num_lines * p.size) return;
    const auto n = Index<C>(i), per = Index<C>(p.is_axis_inner ? p.size : p.num_lines);
    const Index<C> outer = n / per, inner = n - outer * per;
    const Index<C> line = p.is_axis_inner ? outer : inner;
    const int64_t place = p.is_axis_inner ? inner : outer;
    const Offsets at = p.lines.offsets(line);

    T element = static_cast<const T*>(p.x)[at.x + place * p.x_step];
    auto sum = Sum<T>(element);
    bool is_named = false;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // a match is rare, and its code is most of the loop
#endif
    for (int64_t j = 0; j < p.num_updates; ++j) {
      if (place_of(p, at.index, j) != place) continue;
      const T update = static_cast<const T*>(p.updates)[at.update + j * p.update_step];
      is_named = true;
      if (p.operation == Operation::none)
        element = update;
      else
        sum = combine(p.operation, sum, Sum<T>(update));
    }
    if (is_named && p.operation != Operation::none) element = T(sum);
    if (is_named || !p.is_in_place) static_cast<T*>(p.out)[at.out + place * p.out_step] = element;
  }
};

}  // namespace tensorcraft::kernel::scatter
