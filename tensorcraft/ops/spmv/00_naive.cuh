// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one row, any strides. Neighbouring threads read elements a row apart, so a warp reads
// 32 sectors of memory for 32 elements, and waits for its longest row.
#include "tensorcraft/ops/spmv/element.cuh"

namespace tensorcraft::kernel::spmv {

struct Naive {
  template <class T, class I, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.a.rows) return;
    const SemiringOf<ParamsOf<C>, C.semiring> semiring(p);
    const auto end = row_begin<I>(p.a, row + 1);
    LongTotal total(semiring);
    for (auto k = row_begin<I>(p.a, row); k < end; ++k) add_element<T, I>(p, k, total);
    store<T>(p, row, total.value());
  }
};

}  // namespace tensorcraft::kernel::spmv
