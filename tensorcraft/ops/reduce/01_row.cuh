// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of threads shares a row: a few lanes, a warp or the block, and if there are fewer rows
// than blocks fill the GPU, several blocks, whose parts Combine joins. A thread starts C.unroll
// accesses of 16 bytes before it needs the first: blocks * threads * unroll * 16 bytes are in
// flight on an SM, 64 KiB or more, instead of threads * sizeof(T). Demands neighbours at 16-byte
// boundaries for that; else an access is one element.
#include "tensorcraft/ops/reduce/partial.cuh"

namespace tensorcraft::kernel::reduce {

// Accesses of one element each as one sequence.
template <class T, int N>
struct Elements {
  const Packed<T, 1> (&accesses)[N];
  TC_DEVICE T operator[](int i) const { return accesses[i][0]; }
};

// The part of a run that a group takes at once, from element `first` on; `index` is that of the
// run's first element.
template <class R, Config C, class T>
TC_DEVICE void add_tile(const Params& p, typename R::State& s, const T* run, int64_t first,
                        int64_t index) {
  constexpr int kStep = C.group * C.vector, kTile = kStep * C.unroll;
  const int lane = int(threadIdx.x) % C.group;
  const int64_t step = C.vector > 1 ? 1 : p.x_step, rest = p.cols - first;
  const T* own = run + (first + lane * C.vector) * step;
  index += first + lane * C.vector;
  const int left = int(rest < kTile ? rest : kTile) - lane * C.vector;
  Packed<T, C.vector> v[C.unroll];
#pragma unroll
  for (int u = 0; u < C.unroll; ++u) {
    if constexpr (has_nothing<R>) v[u].fill(R::nothing());
    if (u * kStep + C.vector <= left) v[u].load(own + u * kStep * step);
  }
  if constexpr (has_nothing<R> && C.vector == 1) {
    R::template add<C.unroll>(s, Elements<T, C.unroll>{v}, index, kStep);
  } else {
#pragma unroll
    for (int u = 0; u < C.unroll; ++u)
      if (has_nothing<R> || u * kStep + C.vector <= left)
        R::template add<C.vector>(s, v[u], index + u * kStep, 1);
  }
  if constexpr (C.vector > 1) {
    if (rest > kTile) return;
    // The end of the run, less than one access.
    const int64_t whole = p.cols - p.cols % C.vector;
#pragma unroll 1  // once, unless a group is small
    for (int64_t i = whole + lane; i < p.cols; i += C.group)
      add_one<R>(s, run[i], index - first - lane * C.vector + i);
  }
}

// The row of a group, whose block has the rows of a Part.
template <Config C>
TC_DEVICE int64_t row_of_group(const Part& part) {
  return int64_t(part.outputs) * (C.threads / C.group) + threadIdx.x / C.group;
}

struct Row {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using R = Reducer<T, C.operation>;
    using State = typename R::State;
    auto& shared = static_shared<GroupShared<State>>();
    constexpr int kTile = C.group * C.vector * C.unroll;

    State s = R::identity();
    const Part own = part_of_block<C>(p);
    if (const int64_t row = row_of_group<C>(own); row < p.rows) {
      const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, row);
#pragma unroll 1  // a unit is C.unroll accesses
      for (int64_t unit = own.split; unit < p.units; unit += C.shared ? p.splits : 1) {
        int64_t segment = 0, tile = unit;
        if constexpr (C.nested) {
          segment = unit / p.tiles;
          tile = unit % p.tiles;
        }
        add_tile<R, C>(p, s, x + row_offset(p, Params::kSegments, segment), tile * kTile,
                       segment * p.cols);
      }
    }
    s = combine_group<R, C>(shared, s);
    const Part part = part_of_block<C>(p);
    if (const int64_t row = row_of_group<C>(part); threadIdx.x % C.group == 0 && row < p.rows)
      finish<R, C>(p, row, 0, part.split, s);
  }
};

}  // namespace tensorcraft::kernel::reduce
