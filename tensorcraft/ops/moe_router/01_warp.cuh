// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp has a token, and a lane C.slots neighbouring experts in registers, so every
// logit is read once and has one score. The best of the warp is found by 32-bit numbers alone:
//   a slot = 5 shuffles and one ballot,
// since lanes hold experts in their order: of equals the first lane has the lowest index. The
// scores of all are computed in a loop over one register, through which the others pass: unrolled,
// they would be most of the kernel's text.
#include "tensorcraft/device/bits.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/ops/moe_router/score.cuh"

namespace tensorcraft::kernel::moe_router {

struct LargerOrder {
  TC_DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

// Orders of a token's experts, where lanes exchange them.
template <Config C>
struct Orders {
  static constexpr int kWarps = C.threads / kWarpSize;
  uint32_t of_warp[kWarps][C.slots * kWarpSize];
};

// The lane with the largest order, the first of equals; `order` becomes it.
TC_DEVICE int first_largest(uint32_t& order) {
  const uint32_t own = order;
  order = warp_reduce(own, LargerOrder());
  return lowest_bit(__ballot_sync(kFullWarp, own == order));
}

template <Config C>
TC_DEVICE Exponentials exponentials_of(const float (&x)[C.slots]) {
  float most = x[0], sum = 0;
#pragma unroll
  for (int s = 1; s < C.slots; ++s) most = fmax_nan(most, x[s]);
  most = warp_max(most);
#pragma unroll
  for (int s = 0; s < C.slots; ++s) sum += expf(x[s] - most);
  return {most, warp_sum(sum)};
}

// Lane g finds how good group g is. Experts of other groups than the best lose their order.
template <Config C>
TC_DEVICE void keep_groups(const Params& p, uint32_t* shared, uint32_t (&orders)[C.slots]) {
  const int lane = int(threadIdx.x) % kWarpSize;
  uint32_t* const own = shared + lane * C.slots;
#pragma unroll
  for (int s = 0; s < C.slots; ++s) own[s] = orders[s];
  __syncwarp();
  uint32_t* const group = shared + lane * p.group_experts;
  uint32_t first = 0, second = 0;
  if (lane < p.groups)
#pragma unroll 1
    for (int e = 0; e < p.group_experts; ++e) {
      const uint32_t order = group[e], lower = order < first ? order : first;
      first = order > first ? order : first;
      second = lower > second ? lower : second;
    }
  uint32_t good = lane < p.groups ? group_order(p, first, second) : 0;
#pragma unroll 1
  for (int n = 0; n < p.group_k; ++n) {
    uint32_t best = good;
    if (first_largest(best) == lane) good = 0;
  }
  if (good != 0)
#pragma unroll 1
    for (int e = 0; e < p.group_experts; ++e) group[e] = 0;
  __syncwarp();
#pragma unroll
  for (int s = 0; s < C.slots; ++s) orders[s] = own[s];
}

// The best expert of the warp, which is taken out of `orders`.
template <Config C>
TC_DEVICE int take_best(uint32_t (&orders)[C.slots]) {
  const int lane = int(threadIdx.x) % kWarpSize;
  uint32_t best = orders[0];
#pragma unroll
  for (int s = 1; s < C.slots; ++s) best = LargerOrder()(best, orders[s]);
  const int owner = first_largest(best);
  int at = 0;
#pragma unroll
  for (int s = C.slots - 1; s >= 0; --s)
    if (orders[s] == best) at = s;
#pragma unroll
  for (int s = 0; s < C.slots; ++s)
    if (lane == owner && s == at) orders[s] = 0;
  return warp_broadcast(lane * C.slots + at, owner);
}

struct Warp {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int kWarps = C.threads / kWarpSize;
    auto& shared = static_shared<Orders<C>>();
    const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
    const int64_t token = int64_t(blockIdx.x) * kWarps + warp;
    if (token >= p.tokens) return;  // the whole warp
    const Token<T> t(p, token);
    const int first = lane * C.slots;
    float x[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s)
      x[s] = first + s < p.experts ? t.logit(first + s) : -kInfinity;

    Exponentials all{0, 1};
    if (p.scoring == Scoring::softmax) all = exponentials_of<C>(x);
    if (p.bias) {
#pragma unroll 1
      for (int n = 0; n < C.slots; ++n) {
        const int expert = first + n < p.experts ? first + n : 0;
        const float choice = choice_of(p, expert, x[0], all);
#pragma unroll
        for (int s = 1; s < C.slots; ++s) x[s - 1] = x[s];
        x[C.slots - 1] = choice;
      }
    }
    uint32_t orders[C.slots];
#pragma unroll
    for (int s = 0; s < C.slots; ++s) orders[s] = first + s < p.experts ? order_of(x[s]) : 0;
    if (p.groups > 1) keep_groups<C>(p, shared.of_warp[warp], orders);

    int expert = 0;  // of the slot that is the lane's number
#pragma unroll 1
    for (int slot = 0; slot < p.k; ++slot) {
      const int best = take_best<C>(orders);
      if (lane == slot) expert = best;
    }
    const bool has_slot = lane < p.k;
    const float score = has_slot ? score_of(p.scoring, t.logit(expert), all) : 0.0f;
    const float sum = p.renormalize ? warp_sum(score) : 1.0f;
    if (!has_slot) return;
    t.weight(lane) = scaled_weight(p, score, sum);
    t.store_id(lane, expert);
  }
};

}  // namespace tensorcraft::kernel::moe_router
