// SPDX-License-Identifier: Apache-2.0
#pragma once
// One thread, one element of the matrix of windows, which it copies, or 0 outside the image.
// Neighbouring threads have neighbouring elements of the matrix, so writes are whole lines. Every
// input is read for each window that has it, most often out of the cache.
#include "tensorcraft/device/base.h"
#include "tensorcraft/ops/conv2d/params.h"

namespace tensorcraft::kernel::conv2d {

struct Im2col {
  template <class T, Im2colConfig C>
  TC_DEVICE static void run(const Im2colParams& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t positions = p.rows.out * p.columns.out, taps = p.rows.taps * p.columns.taps;
    const int64_t elements = p.channels * taps, matrix = positions * elements;
    if (i >= p.batch * matrix) return;
    const int64_t sample = i / matrix, place = i % matrix;
    const int64_t position = p.channels_first ? place % positions : place / elements;
    const int64_t element = p.channels_first ? place / positions : place % elements;
    const int64_t c = p.channels_first ? element / taps : element % p.channels;
    const int64_t tap = p.channels_first ? element % taps : element / p.channels;
    const int64_t y = p.rows.at(position / p.columns.out, tap / p.columns.taps);
    const int64_t x = p.columns.at(position % p.columns.out, tap % p.columns.taps);
    const bool inside = p.rows.has(y) && p.columns.has(x);
    T* out = static_cast<T*>(p.out) + sample * p.out_sample + position * p.out_position +
             element * p.out_element;
    *out = inside ? static_cast<const T*>(p.x)[p.x_at.offset(sample, y, x, c)] : T();
  }
};

}  // namespace tensorcraft::kernel::conv2d
