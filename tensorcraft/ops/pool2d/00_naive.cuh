// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the result, counted along its unit stride: channels last, or columns
// last. Any strides.
#include "tensorcraft/ops/pool2d/pool.cuh"

namespace tensorcraft::kernel::pool2d {

struct Naive {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (i >= p.batch * p.rows.out * p.columns.out * p.channels) return;
    const bool channels_last = p.out_at.channel == 1;
    int64_t channel = 0;
    if (channels_last) {
      channel = i % p.channels;
      i /= p.channels;
    }
    const int64_t column = i % p.columns.out, line = i / p.columns.out;
    const int64_t row = line % p.rows.out;
    int64_t sample = line / p.rows.out;
    if (!channels_last) {
      channel = sample % p.channels;
      sample /= p.channels;
    }
    pool_window<T, C>(p, sample, row, column, channel);
  }
};

}  // namespace tensorcraft::kernel::pool2d
