// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of out; any strides. Each code is unpacked for each row of a.
#include "tensorcraft/ops/packed_gemm/weight.cuh"

namespace tensorcraft::kernel::packed_gemm {

struct Naive {
  template <class T, class S, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t token = i / p.n, row = i - token * p.n;
    if (token >= p.m) return;
    const T* const a = static_cast<const T*>(p.a) + token * p.a_strides[0];
    const uint8_t* const codes = p.codes + row * (p.k / 2);
    float sum = 0;
    for (int64_t first = 0; first < p.k; first += p.group) {
      const Scale scale = scale_of<S>(p, row, first / p.group);
      for (int64_t k = first; k < first + p.group; ++k) {
        const CodePlace place = code_place(k, p.k);
        const uint32_t code = uint32_t(codes[place.byte]) >> place.shift;
        sum = fmaf(float(a[k * p.a_strides[1]]), weight_of<S>(code, scale), sum);
      }
    }
    sum *= p.tensor_scale;
    if (p.bias) sum += float(static_cast<const T*>(p.bias)[row]);
    static_cast<T*>(p.out)[token * p.out_strides[0] + row * p.out_strides[1]] = T(sum);
  }
};

}  // namespace tensorcraft::kernel::packed_gemm
