// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/problem.hpp"

#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/ops/permute/plan.h"

#include <cstring>

namespace tensorcraft::kernel::permute {
namespace {

constexpr int64_t kGrainBytes = 64 * 1024;  // at least so many for a thread

// out[i] = in[i * step] for a run of the output.
template <class T>
void move_run(T* out, const T* in, int64_t out_step, int64_t in_step, int64_t n) {
  if (in_step == 1 && out_step == 1) {
    std::memcpy(out, in, size_t(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i * out_step] = in[i * in_step];
}

// The innermost axis by runs, which are cut so that all threads have some.
template <class T>
void move_runs(const Params& p) {
  const int last = p.axes.count - 1;
  const int64_t length = last < 0 ? 1 : p.axes.size[last];
  const int64_t in_step = last < 0 ? 1 : p.axes.in_stride[last],
                out_step = last < 0 ? 1 : p.axes.out_stride[last];
  const int64_t run = std::min(length, kGrainBytes / int64_t(sizeof(T))),
                cuts = div_ceil(length, run), runs = p.count / length * cuts;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (run * int64_t(sizeof(T))));
  host::parallel_for(runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % cuts * run;
      const Offsets at = p.axes.offsets(i / cuts * length + from);
      move_run(static_cast<T*>(p.out) + at.out, static_cast<const T*>(p.in) + at.in, out_step,
               in_step, std::min(run, length - from));
    }
  });
}

// Tiles whose lines fit the nearest cache, if each side has neighbours along an axis of its own.
template <class T>
void move_tiles(const Params& p) {
  constexpr int64_t kTile = 64;
  const int axis = input_axis(p.axes), last = p.axes.count - 1;
  const int64_t rows = p.axes.size[last], cols = p.axes.size[axis];
  const int64_t in_step = p.axes.in_stride[last], out_step = p.axes.out_stride[axis];
  const int64_t row_tiles = div_ceil(rows, kTile), col_tiles = div_ceil(cols, kTile);
  Axes matrices = p.axes;
  remove_axis(matrices, last);
  remove_axis(matrices, axis);
  const auto move_tile = [&](int64_t tile) {
    const int64_t row = tile / col_tiles % row_tiles * kTile, col = tile % col_tiles * kTile;
    const Offsets at = matrices.offsets(tile / col_tiles / row_tiles);
    const T* in = static_cast<const T*>(p.in) + at.in + row * in_step + col;
    T* out = static_cast<T*>(p.out) + at.out + col * out_step + row;
    const int64_t height = std::min(kTile, rows - row), width = std::min(kTile, cols - col);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < height; ++i) out[j * out_step + i] = in[i * in_step + j];
  };
  const int64_t tiles = p.count / rows / cols * row_tiles * col_tiles;
  const int64_t grain =
      std::max<int64_t>(1, kGrainBytes / (std::min(rows, kTile) * std::min(cols, kTile)));
  host::parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) move_tile(tile);
  });
}

}  // namespace

void cpu(const Problem& q) {
  if (q.out.data() == q.x.data()) return;  // a copy onto itself
  const Params p = params(q);
  host::with_bits_of_size(dtype_bytes(q.x.dtype()), [&]<class T>(T*) {
    tiled_refusal(p.axes).empty() ? move_tiles<T>(p) : move_runs<T>(p);
  });
}

void reference(const Problem& q) {
  if (q.out.data() == q.x.data()) return;
  const host::Elements to(q.out), from(q.x);
  for (int64_t i = 0; i < q.x.size(); ++i)
    std::memcpy(to.address(i), from.address(i), dtype_bytes(q.x.dtype()));
}

}  // namespace tensorcraft::kernel::permute
