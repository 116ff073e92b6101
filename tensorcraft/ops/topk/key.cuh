// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/topk/params.h"

namespace tensorcraft::kernel::topk {

// Element and index as one number, larger if the element comes first: a NaN before any number,
// zeros of both signs equal, of equals the lower index first. All keys of a row differ, and none is
// 0 or all ones. Indices are below 2^32.
template <class T>
TC_HOST_DEVICE uint64_t key_of(T x, int64_t index) {
  const float value = float(x) + 0.0f;  // -0 becomes 0
  const auto bits = bit_cast<uint32_t>(value);
  const uint32_t order = value != value       ? 0xfffffffeu
                         : bits & 0x80000000u ? ~bits
                                              : bits | 0x80000000u;
  return uint64_t(order) << 32 | (0xffffffffu - uint32_t(index));
}

TC_HOST_DEVICE int64_t index_of(uint64_t key) { return 0xffffffffu - uint32_t(key); }

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
    const int64_t i = index_of(key);
    out[place * p.out_step] = x[i * p.x_step];
    if (indices) indices[place * p.indices_step] = i;
  }
};

}  // namespace tensorcraft::kernel::topk
