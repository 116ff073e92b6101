// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the threads of a row hold all of it in registers, so it is read once and written
// once: the bytes of a copy. A short row belongs to a warp or half of one, which needs no barrier;
// a long one to the block. Demands: a row fits group * vector * slots elements.
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/row_group.cuh"
#include "tensorcraft/ops/softmax/row.cuh"

namespace tensorcraft::kernel::softmax {

struct Reductions {
  BlockReduce<float> top, sum;
};

struct InRegisters {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& shared = static_shared<Reductions>();
    const auto [row, exists] = group_row<C>(p.rows);
    const int first = int(threadIdx.x % C.group) * C.vector, cols = int(p.cols);
    const Logits<T, C> x(p, row);
    T* out = static_cast<T*>(p.out) + row_offset(p, Params::kOut, row);
    constexpr int kStep = C.group * C.vector;

    float v[C.slots][C.vector];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      const int at = first + s * kStep, left = cols - at;
      if (C.whole || left >= C.vector) {
        x.load(v[s], at);
      } else {  // exp(-inf) adds nothing
        for (int e = 0; e < C.vector; ++e) v[s][e] = e < left ? x.at(at + e) : -kInfinity;
      }
    }
    ExpSum total = ExpSum::of_nothing();
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      float part = v[s][0];
      for (int e = 1; e < C.vector; ++e) part = fmax_nan(part, v[s][e]);
      total.top = fmax_nan(total.top, part);
    }
    total.top = group_reduce_once<C.group>(shared.top, total.top, Max());
#pragma unroll
    for (int s = 0; s < C.slots; ++s) {
      float part = 0;
      for (int e = 0; e < C.vector; ++e) part += weight<C>(v[s][e] = hold<C>(v[s][e], total.top));
      total.sum += part;
    }
    total.sum = group_reduce_once<C.group>(shared.sum, total.sum, Sum());
    if (!exists) return;

    if constexpr (C.form == Form::logsumexp) {
      if (threadIdx.x % C.group == 0) *out = T(total.log_sum());
    } else {
      const Finish<C> finish(total);
#pragma unroll
      for (int s = 0; s < C.slots; ++s) {
        const int at = first + s * kStep, left = cols - at;
        for (int e = 0; e < C.vector; ++e) v[s][e] = finish.of_held(v[s][e]);
        if (C.whole || left >= C.vector) {
          store_floats(out + at, v[s]);
        } else {
          for (int e = 0; e < C.vector; ++e)
            if (e < left) out[at + e] = T(v[s][e]);
        }
      }
    }
  }
};

}  // namespace tensorcraft::kernel::softmax
