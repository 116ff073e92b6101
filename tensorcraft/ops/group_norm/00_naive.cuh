// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one group of a sample: three walks over it: the mean, the variance about it, the
// results. Neighbouring threads read addresses a whole group apart. Any strides.
#include "tensorcraft/device/compensated_sum.cuh"
#include "tensorcraft/ops/group_norm/row.cuh"

namespace tensorcraft::kernel::group_norm {

// f(value, channel of the group, position in its plane) for every element of a group.
template <Config C, class T, class F>
TC_DEVICE void for_each_element(const Params& p, const T* x, F f) {
  for (int64_t c = 0; c < p.group_channels; ++c)
    for (int64_t i = 0; i < p.spatial; ++i)
      f(float(x[c * p.x_channel + p.x_spatial.offset<C.nested>(i)]), c, i);
}

struct Naive {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const Params& p) {
    const int64_t row = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (row >= p.rows) return;
    const int64_t sample = row / p.groups, channel = first_channel(p, row);
    const T* x = static_cast<const T*>(p.x) + sample * p.x_batch + channel * p.x_channel;
    T* out = static_cast<T*>(p.out) + sample * p.out_batch + channel * p.out_channel;
    const float pivot = finite_or_zero(float(x[0]));
    CompensatedSum sum, squares;
    for_each_element<C>(p, x, [&](float h, int64_t, int64_t) { sum.add(h - pivot); });
    Statistics s{pivot, sum.value() * p.inverse_cols, 0};
    for_each_element<C>(p, x, [&](float h, int64_t, int64_t) {
      const float d = h - s.pivot - s.shift;
      squares.add(d * d);
    });
    s.rstd = rsqrtf(squares.value() * p.inverse_cols + p.eps);
    if (is_extreme<T>(s.rstd)) return store_extreme_row<T, W, C>(p, row);
    for_each_element<C>(p, x, [&](float h, int64_t c, int64_t i) {
      const Affine f = affine<W>(p, channel + c, s);
      out[c * p.out_channel + p.out_spatial.offset<C.nested>(i)] =
          T((h - s.pivot - s.shift) * f.scale + f.bias);
    });
  }
};

}  // namespace tensorcraft::kernel::group_norm
