// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one token: k times the best expert below the last, each score computed anew for each
// slot. Groups are chosen first, in the same way.
#include "tensorcraft/ops/moe_router/score.cuh"

namespace tensorcraft::kernel::moe_router {

template <class T>
TC_DEVICE Exponentials exponentials_of(const Token<T>& t) {
  Exponentials all{-kInfinity, 0};
#pragma unroll 1
  for (int e = 0; e < t.p.experts; ++e) all.most = fmax_nan(all.most, t.logit(e));
#pragma unroll 1
  for (int e = 0; e < t.p.experts; ++e) all.sum += expf(t.logit(e) - all.most);
  return all;
}

// A bit for each group whose experts the token may have.
template <class T>
TC_DEVICE uint32_t usable_groups(const Token<T>& t, const Exponentials& all) {
  const Params& p = t.p;
  uint32_t usable = 0;
  if (p.groups == 1) return 1;
#pragma unroll 1
  for (int n = 0; n < p.group_k; ++n) {
    uint64_t best = 0;
#pragma unroll 1
    for (int g = 0; g < p.groups; ++g) {
      if (usable >> g & 1) continue;
      uint32_t first = 0, second = 0;
#pragma unroll 1
      for (int e = g * p.group_experts; e < (g + 1) * p.group_experts; ++e) {
        const uint32_t order = order_of(choice_of(p, e, t.logit(e), all));
        if (order > first) {
          second = first;
          first = order;
        } else if (order > second) {
          second = order;
        }
      }
      const uint64_t key = ranked(group_order(p, first, second), g);
      if (key > best) best = key;
    }
    usable |= 1u << ranked_index(best);
  }
  return usable;
}

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t token = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (token >= p.tokens) return;
    const Token<T> t(p, token);
    Exponentials all{0, 1};
    if (p.scoring == Scoring::softmax) all = exponentials_of(t);
    const uint32_t usable = usable_groups(t, all);
    uint64_t last = ~uint64_t(0);
    float sum = 0;
#pragma unroll 1
    for (int slot = 0; slot < p.k; ++slot) {
      uint64_t best = 0;
#pragma unroll 1
      for (int e = 0; e < p.experts; ++e) {
        if (!(usable >> (e / p.group_experts) & 1)) continue;
        const uint64_t key = ranked(order_of(choice_of(p, e, t.logit(e), all)), e);
        if (key < last && key > best) best = key;
      }
      const int expert = int(ranked_index(best));
      t.store_id(slot, expert);
      t.weight(slot) = score_of(p.scoring, t.logit(expert), all);
      sum += t.weight(slot);
      last = best;
    }
#pragma unroll 1
    for (int slot = 0; slot < p.k; ++slot) t.weight(slot) = scaled_weight(p, t.weight(slot), sum);
  }
};

}  // namespace tensorcraft::kernel::moe_router
