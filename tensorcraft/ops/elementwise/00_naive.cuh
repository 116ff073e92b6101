// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element; any strides, broadcast axes have stride 0. A thread has one small access
// in flight for each input and pays a division for each axis that does not merge.
#include "tensorcraft/ops/elementwise/evaluate.cuh"

namespace tensorcraft::kernel::elementwise {

struct Naive {
  template <class A, class B, class Out, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.size) return;
    A a{};
    B b{};
    if constexpr (num_inputs(C.operation) > 0)
      a = A(static_cast<const InMemory<A>*>(p.a)[p.a_map.offset<C.nested>(i)]);
    if constexpr (num_inputs(C.operation) > 1)
      b = B(static_cast<const InMemory<B>*>(p.b)[p.b_map.offset<C.nested>(i)]);
    static_cast<Out*>(p.out)[p.out_map.offset<C.nested>(i)] = evaluate<Out, C.operation>(a, b, p);
  }
};

}  // namespace tensorcraft::kernel::elementwise
