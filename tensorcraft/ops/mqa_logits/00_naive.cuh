// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one logit: it reads a key once for each head. Takes everything: any heads, head_dim,
// block_size and strides. Threads of a warp have neighbouring keys of one query.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/ops/mqa_logits/keys.cuh"

namespace tensorcraft::kernel::mqa_logits {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t logits = int64_t(p.batch) * p.queries * p.keys;
    for (int64_t at = int64_t(blockIdx.x) * C.threads + threadIdx.x; at < logits;
         at += int64_t(gridDim.x) * C.threads) {
      const int64_t row = at / p.keys, b = row / p.queries, i = row % p.queries;
      const int j = int(at % p.keys);
      p.out[offset(p.out_strides, b, i) + j * p.out_strides.step] = logit<T>(p, b, i, j);
    }
  }

 private:
  template <class T>
  TC_DEVICE static float logit(const Params& p, int64_t b, int64_t i, int j) {
    const KeyRange range = checked_keys_of(p, b, i);
    if (j < range.begin || j >= range.end) return -kInfinity;
    const KeyPlace place = place_of(p, b, j);
    if (!is_there(p, place)) return -kInfinity;
    const T* const k = static_cast<const T*>(p.k) + offset(p.k_strides, place);
    const T* q = static_cast<const T*>(p.q) + offset(p.q_strides, b, i);
    const float* weight = p.weights + offset(p.weights_strides, b, i);
    float sum = 0;
    for (int h = 0; h < p.heads; ++h, q += p.q_strides.head, weight += p.weights_strides.head) {
      float dot = 0;
      for (int d = 0; d < p.head_dim; ++d)
        dot = fmaf(float(q[d * p.q_strides.step]), float(k[d * p.k_strides.step]), dot);
      sum = fmaf(*weight, relu(dot), sum);
    }
    return sum * scale_of(p, place);
  }
};

}  // namespace tensorcraft::kernel::mqa_logits
