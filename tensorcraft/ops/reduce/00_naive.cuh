// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one output: a walk over its elements, whatever their strides. Neighbouring threads
// read addresses that lie a row apart if the last axis is reduced, and few outputs are few threads.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/ops/reduce/reducer.cuh"

namespace tensorcraft::kernel::reduce {

// Elements that meet before they join others, and so many of those before they join all, so that
// rounding grows with 256, 256 and n / 2^16, not n.
inline constexpr int64_t kTogether = 256;

// The states of a thread's elements, one after the other.
template <Operation operation, class T>
struct Chain {
  using R = Reducer<T, operation>;
  typename R::State all = R::identity(), parts = R::identity(), part = R::identity();
  TC_DEVICE void add(T x, int64_t index) {
    add_one<R>(part, x, index);
    if (index % kTogether != kTogether - 1) return;
    parts = R::combine(parts, part);
    part = R::identity();
    if (index % (kTogether * kTogether) != kTogether * kTogether - 1) return;
    all = R::combine(all, parts);
    parts = R::identity();
  }
  TC_DEVICE typename R::State state() const { return R::combine(all, R::combine(parts, part)); }
};
// Sums of floats lose nothing on the way.
template <Operation operation, class T>
  requires FloatingPoint<T> && (operation == Operation::sum || operation == Operation::mean)
struct Chain<operation, T> {
  CompensatedSum all;
  TC_DEVICE void add(T x, int64_t) { all.add(float(x)); }
  TC_DEVICE typename Sum<T>::State state() const { return {all.value()}; }
};

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using R = Reducer<T, C.operation>;
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
    Chain<C.operation, T> chain;
    for (int64_t segment = 0; segment < p.segments; ++segment) {
      const T* run = x + row_offset(p, Params::kSegments, segment);
      for (int64_t i = 0; i < p.cols; ++i) chain.add(run[i * p.x_step], segment * p.cols + i);
    }
    store<C.operation, R>(p, row_offset(p, Params::kOut, row), chain.state());
  }
};

}  // namespace tensorcraft::kernel::reduce
