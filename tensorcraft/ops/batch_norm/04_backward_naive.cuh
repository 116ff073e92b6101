// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backward direction: one thread, one channel, two walks over it. With xhat = (x - mean) rstd,
// grad_bias = sum(grad), grad_weight = sum(grad xhat), and each element gets
// weight rstd (grad - mean(grad) - xhat mean(grad xhat)). Any strides.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/ops/batch_norm/channel.cuh"

namespace tensorcraft::kernel::batch_norm {

// The two sums of a channel, the second of grad xhat.
struct GradSums {
  float grad, product;
};
// Sums of a walk of any length.
struct LongGradSums {
  CompensatedSum grad, product;
  TC_DEVICE void add(const GradSums& some) {
    grad.add(some.grad);
    product.add(some.product);
  }
  TC_DEVICE GradSums value() const { return {grad.value(), product.value()}; }
};

// The result of the sums: grad_input = (grad - mean_grad - (x - mean) slope) scale.
struct InputGrad {
  float mean, mean_grad, slope, scale;
  TC_DEVICE float operator()(float grad, float x) const {
    return (grad - mean_grad - (x - mean) * slope) * scale;
  }
};

template <class W>
TC_DEVICE InputGrad input_grad(const BackwardParams& p, int64_t channel, const GradSums& sums) {
  const float inverse_count = 1.0f / (float(p.batch) * float(p.spatial));
  const float rstd = p.rstd[channel];
  return {p.mean[channel], sums.grad * inverse_count, sums.product * inverse_count * rstd,
          value_or<W>(p.weight, channel, 1) * rstd};
}

// By one thread.
template <class W>
TC_DEVICE void store_grads(const BackwardParams& p, int64_t channel, const GradSums& sums) {
  if (p.grad_weight) static_cast<W*>(p.grad_weight)[channel] = W(sums.product);
  if (p.grad_bias) static_cast<W*>(p.grad_bias)[channel] = W(sums.grad);
}

struct BackwardNaive {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const BackwardParams& p) {
    const int64_t channel = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (channel >= p.channels) return;
    const T* grad = static_cast<const T*>(p.grad) + channel * p.grad_layout.channel;
    const T* x = static_cast<const T*>(p.x) + channel * p.x_layout.channel;
    T* out = static_cast<T*>(p.grad_input) + channel * p.out_layout.channel;
    LongGradSums both;
    for (int64_t n = 0; n < p.batch; ++n)
      for (int64_t s = 0; s < p.spatial; ++s) {
        const float g = float(grad[offset<C>(p.grad_layout, {n, s})]);
        const float centered = float(x[offset<C>(p.x_layout, {n, s})]) - p.mean[channel];
        both.add({g, g * (centered * p.rstd[channel])});
      }
    const GradSums sums = both.value();
    const InputGrad f = input_grad<W>(p, channel, sums);
    for (int64_t n = 0; n < p.batch; ++n)
      for (int64_t s = 0; s < p.spatial; ++s) {
        const float g = float(grad[offset<C>(p.grad_layout, {n, s})]);
        out[offset<C>(p.out_layout, {n, s})] = T(f(g, float(x[offset<C>(p.x_layout, {n, s})])));
      }
    store_grads<W>(p, channel, sums);
  }
};

}  // namespace tensorcraft::kernel::batch_norm
