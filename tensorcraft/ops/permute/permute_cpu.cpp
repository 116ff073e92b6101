// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/permute_cpu.hpp"

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
void move_runs(const Move& m) {
  const int last = m.last();
  const int64_t length = last < 0 ? 1 : m.axes.size[last];
  const int64_t in_step = last < 0 ? 1 : m.axes.in_stride[last],
                out_step = last < 0 ? 1 : m.axes.out_stride[last];
  const int64_t run = std::min(length, kGrainBytes / int64_t(sizeof(T))),
                cuts = div_ceil(length, run), runs = m.size() / length * cuts;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (run * int64_t(sizeof(T))));
  host::parallel_for(runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % cuts * run;
      const Offsets at = m.axes.offsets(i / cuts * length + from);
      move_run(static_cast<T*>(m.out) + at.out, static_cast<const T*>(m.in) + at.in, out_step,
               in_step, std::min(run, length - from));
    }
  });
}

// Tiles whose lines fit the nearest cache, where each side has neighbours along an axis of its own.
template <class T>
void move_tiles(const Move& m) {
  constexpr int64_t kTile = 64;
  const int axis = input_axis(m), last = m.last();
  const int64_t rows = m.axes.size[last], cols = m.axes.size[axis];
  const int64_t in_step = m.axes.in_stride[last], out_step = m.axes.out_stride[axis];
  const int64_t row_tiles = div_ceil(rows, kTile), col_tiles = div_ceil(cols, kTile);
  Axes matrices = m.axes;
  remove_axis(matrices, last);
  remove_axis(matrices, axis);
  const auto move_tile = [&](int64_t tile) {
    const int64_t row = tile / col_tiles % row_tiles * kTile, col = tile % col_tiles * kTile;
    const Offsets at = matrices.offsets(tile / col_tiles / row_tiles);
    const T* in = static_cast<const T*>(m.in) + at.in + row * in_step + col;
    T* out = static_cast<T*>(m.out) + at.out + col * out_step + row;
    const int64_t height = std::min(kTile, rows - row), width = std::min(kTile, cols - col);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < height; ++i) out[j * out_step + i] = in[i * in_step + j];
  };
  const int64_t tiles = m.size() / rows / cols * row_tiles * col_tiles;
  const int64_t grain =
      std::max<int64_t>(1, kGrainBytes / (std::min(rows, kTile) * std::min(cols, kTile)));
  host::parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) move_tile(tile);
  });
}

template <class T>
void move(const Move& m) {
  if (tiled_problem(m).empty())
    move_tiles<T>(m);
  else
    move_runs<T>(m);
}

}  // namespace

void cpu(const TensorView& out, const TensorView& x) {
  if (out.data() == x.data()) return;  // a copy onto itself
  const Move m = make_move(x.data(), out.data(), int(dtype_bytes(x.dtype())), x.rank(),
                           x.shape().data(), x.strides().data(), out.strides().data());
  host::with_bits_of_size(size_t(m.element_bytes), [&]<class T>(T*) { move<T>(m); });
}

void reference(const TensorView& out, const TensorView& x) {
  if (out.data() == x.data()) return;
  const host::Elements to(out), from(x);
  for (int64_t i = 0; i < x.size(); ++i)
    std::memcpy(to.address(i), from.address(i), dtype_bytes(x.dtype()));
}

}  // namespace tensorcraft::kernel::permute
