// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/order.cuh"
#include "tensorcraft/ops/topk/params.h"

namespace tensorcraft::kernel::topk {

// Element and index as one number, larger if the element comes first.
template <class T>
TC_HOST_DEVICE uint64_t key_of(T x, int64_t index) {
  return ranked(order_of(float(x)), index);
}

// A row of the tensors: where elements are, and where the place-th largest goes.
template <class T, Config C>
struct Row {
  const Params& p;
  const T* x;
  T* out;
  int64_t* indices;

  TC_DEVICE Row(const Params& params, int64_t row)
      : p(params),
        x(static_cast<const T*>(params.x) + params.x_rows.offset<C.nested>(row)),
        out(static_cast<T*>(params.out) + params.out_rows.offset<C.nested>(row)),
        indices(nullptr) {
    if (p.indices) indices = p.indices + p.indices_rows.offset<C.nested>(row);
  }
  TC_DEVICE uint64_t key(int64_t i) const { return key_of(x[i * p.x_step], i); }
  // The element itself, so that its bits stay.
  TC_DEVICE void store(int64_t place, uint64_t key) const {
    const int64_t i = ranked_index(key);
    out[place * p.out_step] = x[i * p.x_step];
    if (indices) indices[place * p.indices_step] = i;
  }
};

}  // namespace tensorcraft::kernel::topk
