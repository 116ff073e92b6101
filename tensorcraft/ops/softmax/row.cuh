// SPDX-License-Identifier: Apache-2.0
#pragma once
// Both ends of a row, which all rungs share: where its values come from, and what becomes of them.
// How a row is held in between is the rung's own idea. A further rung needs Logits, hold() and
// Finish, or log_sum() of the whole row's ExpSum for logsumexp, and no other text of this folder.
#include "tensorcraft/device/exp_sum.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/softmax/params.h"

namespace tensorcraft::kernel::softmax {

template <class T, Mask mask>
struct MaskElement {
  using Type = T;
};
template <class T>
struct MaskElement<T, Mask::boolean> {
  using Type = uint8_t;
};
template <class T>
struct MaskElement<T, Mask::float32> {
  using Type = float;
};

// The logits of a row: x, scaled, and masked. What a bool mask hides is -inf, whatever x has there.
template <class T, Config C>
class Logits {
 public:
  TC_DEVICE Logits(const RowParams<Params, C>& p, int64_t row)
      : x_(static_cast<const T*>(p.x) + row_offset(p, Params::kX, row)),
        x_step_(p.x_step),
        mask_step_(p.mask_step),
        scale_(p.scale),
        policy_(stream_policy(p.rows * p.cols * int64_t(sizeof(T)))) {
    if constexpr (C.mask != Mask::none)
      mask_ = static_cast<const Element*>(p.mask) + row_offset(p, Params::kMask, row);
  }

  // Of any strides.
  TC_DEVICE float strided(int64_t i) const {
    return masked(scaled(float(x_[i * x_step_])), i * mask_step_);
  }
  // Of neighbours.
  TC_DEVICE float at(int64_t i) const { return masked(scaled(float(x_[i])), i); }
  // kCount of them from i on, aligned as load_floats() wants it.
  template <int kCount>
  TC_DEVICE void load(float (&v)[kCount], int64_t i) const {
    load_streamed_floats(v, x_ + i, policy_);
    transform(v, i);
  }
  // The row as it lies in memory, and what becomes of kCount values of it from i on.
  TC_DEVICE const T* data() const { return x_; }
  template <int kCount>
  TC_DEVICE void transform(float (&v)[kCount], int64_t i) const {
    for (int e = 0; e < kCount; ++e) v[e] = scaled(v[e]);
    if constexpr (C.mask == Mask::boolean) {
      const auto keep = load_vector<kCount>(mask_ + i);
      for (int e = 0; e < kCount; ++e) v[e] = keep[e] ? v[e] : -kInfinity;
    } else if constexpr (C.mask != Mask::none) {
      float added[kCount];
      load_floats(added, mask_ + i);
      for (int e = 0; e < kCount; ++e) v[e] += added[e];
    }
  }

 private:
  using Element = typename MaskElement<T, C.mask>::Type;

  // Rounded by itself: fused with the subtraction of the maximum, which was rounded, the largest
  // logit would not meet itself.
  TC_DEVICE float scaled(float v) const {
    if constexpr (!C.scaled) return v;
#if TC_PTX
    return __fmul_rn(v, scale_);
#else
    return v * scale_;
#endif
  }
  TC_DEVICE float masked(float v, int64_t at) const {
    if constexpr (C.mask == Mask::none) return v;
    if constexpr (C.mask == Mask::boolean) return mask_[at] ? v : -kInfinity;
    return v + float(mask_[at]);
  }

  const T* x_;
  const Element* mask_ = nullptr;
  int64_t x_step_, mask_step_;
  float scale_;
  uint64_t policy_;
};

// A value as a rung keeps it between the two walks, and e^(x - top) of it.
template <Config C>
TC_DEVICE float hold(float x, float top) {
  return C.form == Form::log_softmax ? x - top : exp_fast(x - top);
}
template <Config C>
TC_DEVICE float weight(float held) {
  return C.form == Form::log_softmax ? exp_fast(held) : held;
}

// The end of a row, from the maximum and the sum of all of it: what becomes of each value. A bool
// mask may leave nothing of a row, whose weights are 0 then; any other row of nothing but -inf
// becomes NaN.
template <Config C>
class Finish {
 public:
  Finish() = default;
  // For values that are held relative to the maximum of the whole row, or of a part of it.
  TC_DEVICE explicit Finish(const ExpSum& row) : Finish(row, 0.f, row.top) {}
  TC_DEVICE Finish(const ExpSum& row, float part_top) : Finish(row, part_top - row.top, part_top) {}

  TC_DEVICE float of_held(float held) const {
    return C.form == Form::log_softmax ? held + change_ : held * change_;
  }
  TC_DEVICE float operator()(float x) const { return of_held(hold<C>(x, top_)); }
  // The same for a result of 2 bytes, whose digits the sum's logarithm does not touch: the division
  // is part of the exponent.
  TC_DEVICE float of_short(float x) const {
    if constexpr (C.form == Form::log_softmax) return (*this)(x);
    return exp2_fast(fmaf(x - top_, kLog2E, log2_change_));
  }

 private:
  TC_DEVICE Finish(const ExpSum& row, float shift, float top) : top_(top) {
    const bool is_empty = C.mask == Mask::boolean && row.sum == 0.f;
    if constexpr (C.form == Form::log_softmax)
      change_ = is_empty ? 0.f : shift - logf(row.sum);
    else
      change_ = is_empty ? 0.f : exp_fast(shift) * ptx::rcp_approx_ftz(row.sum);
    log2_change_ = log2f(change_);
  }

  float top_, change_, log2_change_;
};

}  // namespace tensorcraft::kernel::softmax
