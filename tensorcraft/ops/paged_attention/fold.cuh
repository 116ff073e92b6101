// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second step of split_wgmma and latent_wgmma folds the parts of a query of a head as their
// consumers do.
#include "tensorcraft/device/attention/row_fold.cuh"
#include "tensorcraft/ops/paged_attention/combine.cuh"

namespace tensorcraft::kernel::paged_attention {

// Parts that the first step has written of a row: those that some row of its tile sees.
struct WrittenParts {
  int first, last;  // last: behind them

  TC_DEVICE WrittenParts(const Request& r, int query, const FoldConfig& c) {
    const int begin = query / c.queries * c.queries;
    const int end = begin + c.queries < r.queries ? begin + c.queries : r.queries;
    const int length = folded_part_keys(r.keys, c.long_part);
    const KeyRange seen{keys_of(r, begin).begin, keys_of(r, end - 1).end};
    first = seen.begin / length;
    last = seen.begin < seen.end ? div_ceil(seen.end, length) : first;
  }
};

struct Fold {
  static constexpr bool begins_itself = true;
  static constexpr int kAtOnce = 8;  // parts on their way
  template <class T, FoldConfig C>
  TC_DEVICE static void run(const Params& p) {
    const KeyParts parts = folded_parts(p, C.values, C.long_part);
    const int64_t warp = int64_t(blockIdx.x) * (C.threads / 32) + threadIdx.x / 32;
    const int64_t row = warp / parts.chunks();
    const int d = int(warp % parts.chunks()) * kCombinedValues + 4 * int(threadIdx.x % 32);
    if (row >= parts.rows) return;
    const RowPlace at = place_of_row(p, row);
    const ResultRow<T> result = result_row<T>(p, row, at);
    const WrittenParts written(at.request, at.i, C);
    const float scale = p.softcap > 0 ? 1.f : p.scale;
    const RowSum* const sums = parts.sum_of(row, 0);
    const float* const from = parts.values_of(row, 0) + (d < parts.values ? d : 0);
    RowFold fold;
    float values[4] = {};
    begin_kernel();
#pragma unroll 1
    for (int next = written.last - 1; next >= written.first; next -= kAtOnce) {
      RowSum found[kAtOnce];
      AlignedVector<float, 4> x[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int part = next - k < written.first ? written.first : next - k;
        found[k] = sums[part];
        x[k] = load_vector<4>(from + int64_t(part) * parts.values);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (next - k < written.first) continue;
        const RowFold::Factors factors = fold.add(found[k], scale * kLog2E);
        for (int n = 0; n < 4; ++n) values[n] = RowFold::value(values[n], x[k][n], factors);
      }
    }
    float factor = inverse_of(fold.sum), lse = lse_of(fold.top, fold.sum, scale);
    if (p.sinks) {
      const Finished with = with_sink(lse, result.sink);
      factor *= with.factor;
      lse = with.lse;
    }
    if (d >= p.v_dim) return;
    for (float& value : values) value *= factor;
    from_floats<T, 4>(values).store(result.out + d);
    if (result.lse && d == 0) *result.lse = lse;
  }
};

}  // namespace tensorcraft::kernel::paged_attention
