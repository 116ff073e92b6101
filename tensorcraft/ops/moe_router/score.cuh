// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/order.cuh"
#include "tensorcraft/ops/moe_router/params.h"

namespace tensorcraft::kernel::moe_router {

// What the softmax of a token divides by: sum(e^(x - most)). Other scores do not look at it.
struct Exponentials {
  float most, sum;
};

TC_DEVICE float score_of(Scoring scoring, float x, const Exponentials& all) {
  if (scoring == Scoring::softmax) return expf(x - all.most) / all.sum;
  if (scoring == Scoring::sigmoid) return 1.0f / (1.0f + expf(-x));
  if (x < -20.0f) return expf(0.5f * x);  // log(1 + e^x) is e^x, which need not be a float
  return sqrtf(fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))));
}

// By what an expert is chosen.
TC_DEVICE float choice_of(const Params& p, int expert, float x, const Exponentials& all) {
  if (!p.bias) return x;
  return score_of(p.scoring, x, all) + p.bias[expert * p.bias_stride];
}

// How good a group is, of its best two experts' orders; 0: it has no second.
TC_DEVICE uint32_t group_order(const Params& p, uint32_t first, uint32_t second) {
  if (!p.bias || second == 0) return first;
  return order_of(value_of(first) + value_of(second));
}

// Weights of a sum below this are not blown up.
inline constexpr float kLeastSum = 1e-20f;
TC_DEVICE float scaled_weight(const Params& p, float score, float sum) {
  if (p.renormalize) score /= fmax_nan(sum, kLeastSum);
  return score * p.scale;
}

// The experts of one token.
template <class T>
struct Token {
  const Params& p;
  const T* logits;
  float* weights;
  int32_t* ids;

  TC_DEVICE Token(const Params& params, int64_t token)
      : p(params),
        logits(static_cast<const T*>(params.logits) + token * params.logits_strides[0]),
        weights(params.weights + token * params.weights_strides[0]),
        ids(params.ids ? params.ids + token * params.ids_strides[0] : nullptr) {}
  TC_DEVICE float logit(int expert) const { return float(logits[expert * p.logits_strides[1]]); }
  TC_DEVICE float& weight(int slot) const { return weights[slot * p.weights_strides[1]]; }
  TC_DEVICE void store_id(int slot, int expert) const {
    if (ids) ids[slot * p.ids_strides[1]] = expert;
  }
};

}  // namespace tensorcraft::kernel::moe_router
