// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: blocks stay and walk over rows. Rows have three places in shared memory: one waits
// to be stored, one is added up, the next arrives, so reading never stops (two places if a residual
// takes the room; then none waits). Weights and biases are read once a block, not once a row, and
// stay in registers. A row that one block has no room for is shared by those of a cluster (sm_90).
// Threads find mean and squares of what they hold and join those, one exchange a row. Demands: rows
// of a multiple of 16 bytes at 16-byte boundaries.
#include "tensorcraft/device/moments.cuh"
#include "tensorcraft/device/persistent_row.cuh"
#include "tensorcraft/ops/norm/row.cuh"

namespace tensorcraft::kernel::norm {

// What a thread finds of a row of rms.
struct Squares {
  float sum;

  TC_DEVICE void append(const Squares& other, int) { sum += other.sum; }
  template <int width = kWarpSize>
  TC_DEVICE Squares over_warp() const {
    return {warp_reduce<width>(sum, Sum())};
  }
};

struct Persistent {
  template <class T, class W, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using Part = Select<C.form == Form::layer, RowPart<C>, Squares>;
    RowPipeline<T, Part, C, C.has_residual != 0> walk(
        static_shared<RowExchange<Part, C>>(), dynamic_shared<Packed<T, C.vector>>(), int(p.cols));
    const OwnWeights<W, C, C.has_weight != 0> weights(p.weight, walk);
    const OwnWeights<W, C, C.has_bias != 0> biases(p.bias, walk);
    float firsts[2] = {}, pivot = 0;  // firsts of rows that are on their way, read without a wait
    auto s = Row<T, W, C>::about(0, 0);
    walk.run(
        uint32_t(p.rows), p.taken,
        [&](uint32_t index) {
          const Row<T, W, C> row(p, index);
          if constexpr (row.kHasPivot) {
            firsts[0] = firsts[1];
            if (index < p.rows) firsts[1] = row.load(0);
          }
          return RowSource<T>{row.x, row.residual};
        },
        [&](uint32_t, int place) {
          if constexpr (C.form == Form::rms) {
            Part own{0};
#pragma unroll 1
            for (int i = 0; i < C.slots; ++i) {
              if (!walk.has(i)) continue;
              for (int e = 0; e < C.vector; ++e) {
                const float h = walk.at(place, i, e);
                own.sum += h * h;
              }
            }
            return own;
          } else {
            pivot = finite_or_zero(firsts[0]);
            SumsAboutFirst own{walk.has(0) ? walk.at(place, 0, 0) : 0, 0, 0, 0};
#pragma unroll 1
            for (int i = 0; i < C.slots; ++i) {
              if (!walk.has(i)) continue;
              float h[C.vector];
              walk.floats(place, i, h);
              own.add(h);
            }
            return row_part<C>(own, pivot);
          }
        },
        [&](const Part& all) {
          if constexpr (C.form == Form::rms) {
            s = {rstd_of(p, all.sum), 1};
          } else {
            s = Row<T, W, C>::about(pivot, all.mean);
            s.rstd = rsqrtf(all.variance(p.inverse_cols) + p.eps);
          }
        },
        [&](uint32_t index, int place) {
          const Row<T, W, C> row(p, index);
          correct_extreme<T, C>(row, s);
#pragma unroll(C.has_weight || C.has_bias ? C.slots : 1)
          for (int i = 0; i < C.slots; ++i) {
            if (!walk.has(i)) continue;
            float h[C.vector], y[C.vector];
            for (int e = 0; e < C.vector; ++e) {
              h[e] = walk.at(place, i, e);
              y[e] = row.finish(h[e], weights.at(i, e, 1), biases.at(i, e, 0), s);
            }
            row.store_results(walk.first + walk.column(i), h, y);
          }
          if (threadIdx.x == 0 && walk.first == 0) store_statistics(p, index, s);
        });
  }
};

}  // namespace tensorcraft::kernel::norm
