// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the copy engine brings the row to shared memory with one instruction (sm_90), and
// all passes read it there. A thread holds nothing of the row in registers, so more blocks
// share a multiprocessor, and a row may be as long as the shared memory of a cluster's blocks,
// which find the mean and the squares of their slices and merge those. Demands: rows of a multiple
// of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/staged_row.cuh"
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

// Of a slice of the row: its mean less the pivot, and the squared distances to that mean.
struct Slice {
  float shift, squares, cols;
};

// The statistics of the row from those of its slices: squares about the common mean are those
// about each slice's own and the distances between the means.
template <int kSlices>
TC_DEVICE Slice merge(const Slice* slices, float inverse_cols) {
  Slice row{};
  for (int i = 0; i < kSlices; ++i) row.shift += slices[i].shift * slices[i].cols;
  row.shift *= inverse_cols;
  for (int i = 0; i < kSlices; ++i) {
    const float d = slices[i].shift - row.shift;
    row.squares += slices[i].squares + d * d * slices[i].cols;
  }
  return row;
}

struct Staged {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& shared = static_shared<StagedShared<Select<C.form == Form::layer, Slice, float>>>();
    auto& memory = dynamic_shared<AlignedVector<T, C.vector>>();
    const int64_t index = blockIdx.x / C.cluster;
    const Row<T, W, C> row(p, index);
    const float pivot = C.form == Form::layer ? row.pivot() : 0;
    const StagedRow<T, C, C.has_residual != 0> h(shared, &memory[0], row.x, row.residual,
                                                 int(p.cols), p.rows);
    Statistics<C.form> s = row.about(0, 0);
    float squares = 0;
    if constexpr (C.form == Form::rms) {
      squares = h.sum(shared.scratch[0], [](float v) { return v * v; });
      if constexpr (C.cluster > 1) {
        const float* parts = h.gather(shared, squares);
        squares = 0;
        for (int i = 0; i < C.cluster; ++i) squares += parts[i];
      }
    } else {
      const auto cols = float(h.cols);
      float shift = h.sum(shared.scratch[0], [&](float v) { return v - pivot; });
      shift = h.cols > 0 ? shift / cols : 0;
      s = row.about(pivot, shift);
      squares = h.sum(shared.scratch[1], [&](float v) {
        const float d = s.centered(v);
        return d * d;
      });
      if constexpr (C.cluster > 1) {
        const Slice merged =
            merge<C.cluster>(h.gather(shared, Slice{shift, squares, cols}), p.inverse_cols);
        s = row.about(pivot, merged.shift);
        squares = merged.squares;
      }
    }
    s.rstd = rstd_of(p, squares);
    if (is_extreme<T>(s)) return store_extreme_row<T, W, C>(p, index);
    h.each([&](int column, const float(&v)[C.vector]) { row.store_neighbours(column, v, s); });
    if (threadIdx.x == 0 && h.first == 0) store_statistics(p, index, s);
  }
};

}  // namespace tensorcraft::kernel::norm
