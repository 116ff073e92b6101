// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/conv_activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/ops/conv2d/params.h"

// How every rung finishes its sums: add bias and residual, activate, round once, store.
namespace tensorcraft::kernel::conv2d {

// A place of the result.
struct Place {
  int64_t sample, row, column;
};

// The place of the result that is row m of the product: places as they are counted.
TC_DEVICE Place place_of_row(const Params& p, uint32_t m) {
  const uint32_t sample = p.by_image.quotient(m), within = m - sample * p.by_image.divisor;
  const uint32_t row = p.by_columns.quotient(within);
  return {sample, row, within - row * p.by_columns.divisor};
}

// Activates, rounds and stores N finished sums that lie side by side.
template <class T, Config C, int N>
TC_DEVICE void store_activated(float (&x)[N], T* out) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = activate<C.activation, T>(x[i]);
  from_floats<T, N>(x).store(out);
}
template <class T, int N>
TC_DEVICE void add_residual(float (&x)[N], const T* from) {
  const auto add = Packed<T, N>::load(from);
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] += add[i];
}

// Stores N neighbouring channels of a place from `channel` on, counted over all groups. With N > 1
// the host has checked that they are one aligned access of every tensor.
template <class T, Config C, int N>
TC_DEVICE void finish(const Params& p, const float (&sums)[N], const Place& at, int64_t channel) {
  float x[N];
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = sums[i];
  if (p.bias) {
    const T* bias = static_cast<const T*>(p.bias) + channel * p.bias_stride;
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] += float(bias[i * p.bias_stride]);
  }
  if (p.residual) {
    const T* from = static_cast<const T*>(p.residual) +
                    p.residual_at.offset(at.sample, at.row, at.column, channel);
    add_residual<T, N>(x, from);
  }
  T* out = static_cast<T*>(p.out) + p.out_at.offset(at.sample, at.row, at.column, channel);
  store_activated<T, C, N>(x, out);
}

}  // namespace tensorcraft::kernel::conv2d
