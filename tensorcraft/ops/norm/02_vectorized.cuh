// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: 16-byte accesses, an eighth of the instructions for 16-bit elements, and mean and
// variance from one walk: each access has a mean and a sum of squares about it, and two such parts
// of n and m elements, means d apart, join as q + r + d^2 n m / (n + m). Nothing cancels. That is 2
// reads for one write; the second comes from the L2 cache if all rows in flight fit it. Demands:
// unit strides, aligned rows of whole accesses.
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

// Some elements: how many, their sum, and their squares about their own mean.
struct Part {
  float count = 0;
  CompensatedSum sum, squares;

  template <int kCount>
  TC_DEVICE void add(const float (&d)[kCount]) {
    float added = 0, about_mean = 0;
    for (int e = 0; e < kCount; ++e) added += d[e];
    const float mean = added * (1.0f / kCount);
    for (int e = 0; e < kCount; ++e) about_mean += (d[e] - mean) * (d[e] - mean);
    if (count > 0) {
      const float apart = mean - sum.value() / count;
      about_mean += apart * apart * (count * kCount / (count + kCount));
    }
    squares.add(about_mean);
    sum.add(added);
    count += kCount;
  }

  // The squares about another mean.
  TC_DEVICE float squares_about(float mean) const {
    if (count == 0) return 0;
    const float apart = sum.value() / count - mean;
    return squares.value() + apart * apart * count;
  }
};

struct Vectorized {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<float>>();
    constexpr int kStep = C.threads * C.vector;
    const int first = int(threadIdx.x) * C.vector;
    for (int64_t index = blockIdx.x; index < p.rows; index += gridDim.x) {
      const Row<T, W, C> row(p, index);
      Statistics<C.form> s = row.about(0, 0);
      float h[C.vector];
      if constexpr (C.form == Form::rms) {
        CompensatedSum squares;
        for (int64_t i = first; i < p.cols; i += kStep) {
          row.load_neighbours(h, i);
          float some = h[0] * h[0];
          for (int e = 1; e < C.vector; ++e) some += h[e] * h[e];
          squares.add(some);
        }
        s.rstd = rstd_of(p, block_sum(scratch, squares.value()));
      } else {
        s.pivot = row.pivot();
        Part part;
        for (int64_t i = first; i < p.cols; i += kStep) {
          row.load_neighbours(h, i);
          for (int e = 0; e < C.vector; ++e) h[e] -= s.pivot;
          part.add(h);
        }
        s.shift = block_sum(scratch, part.sum.value()) * p.inverse_cols;
        s.rstd = rstd_of(p, block_sum(scratch, part.squares_about(s.shift)));
      }
      if (is_extreme<T>(s)) {
        store_extreme_row<T, W, C>(p, index);
        continue;
      }
      for (int64_t i = first; i < p.cols; i += kStep) {
        row.load_neighbours(h, i);
        row.store_neighbours(i, h, s);
      }
      if (threadIdx.x == 0) store_statistics(p, index, s);
    }
  }
};

}  // namespace tensorcraft::kernel::norm
