// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/row_group.cuh"

namespace tensorcraft {

// The maximum of some values and the sum of e^(x - top) over them, in one walk: a larger maximum
// rescales the sum. A NaN or +inf among the values makes the sum NaN. The maximum is finite from
// the start, so that of nothing, and of nothing but -inf, the sum is 0 and no difference NaN.
struct ExpSum {
  float top, sum;

  TC_DEVICE static ExpSum of_nothing() { return {kLowest, 0}; }
  TC_DEVICE static ExpSum of(float x) {
    const float top = fmax_nan(x, kLowest);
    return {top, exp_fast(x - top)};
  }

  // That of more values, beside a maximum that is that of these too.
  template <int kCount>
  TC_DEVICE ExpSum of_next(const float (&v)[kCount]) const {
    float next = top;  // one by one: in pairs they take registers that loads under way need
    for (int e = 0; e < kCount; ++e) next = fmax_nan(next, v[e]);
    float terms[kCount];
    for (int e = 0; e < kCount; ++e) terms[e] = exp_fast(v[e] - next);
    return {next, in_pairs(terms, Sum())};
  }
  template <int kCount>
  TC_DEVICE void add(const float (&v)[kCount]) {
    const ExpSum some = of_next(v);
    sum = fmaf(sum, exp_fast(top - some.top), some.sum);
    top = some.top;
  }

  // Every thread gets that of its group's values, as group_reduce_once() does.
  template <int group>
  TC_DEVICE ExpSum over_group(BlockReduce<ExpSum>& shared) const {
    if constexpr (group <= kWarpSize)
      return over_warp<group>();
    else
      return part_of_warps<group>(shared, over_warp()).template over_warp<group / kWarpSize>();
  }
  // The sum over a block, with a scratch for each of its two reductions and no barrier more.
  template <int threads>
  TC_DEVICE ExpSum over_block(BlockReduce<float>& tops, BlockReduce<float>& sums) const {
    const float all = group_reduce_once<threads>(tops, top, Max());
    return {all, group_reduce_once<threads>(sums, relative_to(all), Sum())};
  }

  // Every lane gets that of the parts of its group of `width` lanes.
  template <int width = kWarpSize>
  TC_DEVICE ExpSum over_warp() const {
    const float all = warp_reduce<width>(top, Max());
    return {all, warp_reduce<width>(relative_to(all), Sum())};
  }
  // This part and another.
  TC_DEVICE void append(const ExpSum& other, int) {
    const float all = fmax_nan(top, other.top);
    sum = relative_to(all) + other.relative_to(all);
    top = all;
  }

  // The sum as it counts beside a maximum at least as large.
  TC_DEVICE float relative_to(float all) const { return sum * exp_fast(top - all); }

  // log(sum(e^x)): -inf of no values, and +inf if one of them is.
  TC_DEVICE float log_sum() const { return top == kInfinity ? top : top + logf(sum); }
};

// Serves a walk of any length: the part that an addition rounds away joins the next.
struct LongExpSum {
  ExpSum all = ExpSum::of_nothing();
  float rest = 0;

  template <int kCount>
  TC_DEVICE void add(const float (&v)[kCount]) {
    const ExpSum some = all.of_next(v);
    const float scale = exp_fast(all.top - some.top);
    const float before = all.sum * scale, whole = fmaf(rest, scale, some.sum);
    all = {some.top, before + whole};
    rest = whole - (all.sum - before);
  }
};

}  // namespace tensorcraft
