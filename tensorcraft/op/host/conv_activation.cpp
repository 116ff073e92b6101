// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/conv_activation.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::host {
namespace {

double between_0_and_6(double x) { return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0); }

TC_HOST_CLONES void clip_row(float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {  // a NaN fails both comparisons
    x[i] = x[i] < 0 ? 0 : x[i];
    x[i] = x[i] > 6 ? 6 : x[i];
  }
}

}  // namespace

double activate(ConvActivation activation, double x) {
  switch (activation) {
    case ConvActivation::none:
      return x;
    case ConvActivation::relu:
      return activate(Activation::relu, x);
    case ConvActivation::relu6:
      return between_0_and_6(x);
    case ConvActivation::gelu:
      return activate(Activation::gelu, x);
    case ConvActivation::silu:
      return activate(Activation::silu, x);
    case ConvActivation::hard_swish:
      return x * (between_0_and_6(x + 3) / 6);
  }
  return x;
}

void row_activate(ConvActivation activation, float* x, int64_t n) {
  if (activation == ConvActivation::relu) row_activate(x, x, Activation::relu, n);
  if (activation == ConvActivation::gelu) row_activate(x, x, Activation::gelu, n);
  if (activation == ConvActivation::silu) row_activate(x, x, Activation::silu, n);
  if (activation == ConvActivation::relu6) clip_row(x, n);
  if (activation == ConvActivation::hard_swish) {
    float* factor = scratch(Slot::row_d, n);
    row_scale(factor, x, 1, 3, n);
    clip_row(factor, n);
    row_scale(factor, factor, 1.0f / 6.0f, 0, n);
    row_multiply(x, factor, n);
  }
}

}  // namespace tensorcraft::host
