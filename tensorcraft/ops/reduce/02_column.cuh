// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the outputs are neighbours, not the elements of one. C.group threads side by side
// take 16 bytes each of a line and so coalesce; the other threads of the block take other lines,
// C.unroll of them at once, and meet in shared memory at the end. If the tiles are fewer than fill
// the GPU, blocks share the lines of a tile, and Combine joins the parts.
#include "tensorcraft/ops/reduce/partial.cuh"

namespace tensorcraft::kernel::reduce {

template <class State, Config C>
struct ColumnShared {
  static constexpr int kColumns = C.group * C.vector, kWays = C.threads / C.group;
  State parts[C.threads / kWarpSize][kColumns];
};

// The first kColumns threads get one column each.
template <class R, Config C, class State>
TC_DEVICE State combine_ways(ColumnShared<State, C>& shared, State (&s)[C.vector]) {
  const int lane = int(threadIdx.x) % kWarpSize, warp = int(threadIdx.x) / kWarpSize;
#pragma unroll 1
  for (int lanes = kWarpSize / 2; lanes >= C.group; lanes /= 2)
    for (State& one : s) one = R::combine(one, shuffle_xor(one, lanes));
  if (lane < C.group)
    for (int e = 0; e < C.vector; ++e) shared.parts[warp][lane * C.vector + e] = s[e];
  __syncthreads();
  State sum = R::identity();
  if (threadIdx.x < C.group * C.vector)
    for (const auto& columns : shared.parts) sum = R::combine(sum, columns[threadIdx.x]);
  return sum;
}

// One column of some lines.
template <class Packed>
struct Line {
  const Packed* lines;
  int column;
  TC_DEVICE auto operator[](int i) const { return lines[i][column]; }
};

// Lines `first`, first + kWays, ... of one column after the other, each as one sequence.
template <class R, Config C, class T>
TC_DEVICE void add_lines(const RowParams<Params, C>& p, typename R::State (&s)[C.vector],
                         const T* x, int64_t first) {
  constexpr int kWays = C.threads / C.group;
  const int64_t rest = p.segments * p.cols - first;
  const int left = int(rest < kWays * C.unroll ? rest : kWays * C.unroll);
  Packed<T, C.vector> v[C.unroll];
  const T* line = x + first * p.x_step;
#pragma unroll
  for (int u = 0; u < C.unroll; ++u) {
    if constexpr (C.nested) {
      const int64_t at = first + u * kWays;
      line = x + row_offset(p, Params::kSegments, at / p.cols) + at % p.cols * p.x_step;
    }
    if constexpr (has_nothing<R>) v[u].fill(R::nothing());
    if (u * kWays < left) v[u].load(line);
    line += kWays * p.x_step;
  }
  if (has_nothing<R> || (C.unroll - 1) * kWays < left) {
#pragma unroll
    for (int e = 0; e < C.vector; ++e)
      R::template add<C.unroll>(s[e], Line<Packed<T, C.vector>>{v, e}, first, kWays);
    return;
  }
#pragma unroll
  for (int u = 0; u < C.unroll; ++u)
    if (u * kWays < left)
      for (int e = 0; e < C.vector; ++e) add_one<R>(s[e], v[u][e], first + u * kWays);
}

// What a block has of the outputs: columns of one row, from `first` on.
template <int kColumns>
struct Columns {
  uint32_t row;
  int64_t first;

  TC_DEVICE Columns(const Params& p, const Part& part)
      : row(p.by_tiles.quotient(part.outputs)),
        first(int64_t(part.outputs - row * p.by_tiles.divisor) * kColumns) {}
};

struct Column {
  template <class T, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    using R = Reducer<T, C.operation>;
    using State = typename R::State;
    using Shared = ColumnShared<State, C>;
    auto& shared = static_shared<Shared>();
    const int lane = int(threadIdx.x) % C.group, way = int(threadIdx.x) / C.group;

    State s[C.vector];
    for (State& one : s) one = R::identity();
    const Part own = part_of_block<C>(p);
    const Columns<Shared::kColumns> from(p, own);
    const int64_t mine = from.first + lane * C.vector;  // the first of the columns of this thread
    if (mine < p.inner) {
      const T* x = static_cast<const T*>(p.x) + row_offset(p, Params::kX, from.row) + mine;
      // A unit is C.unroll accesses. For all the compiler knows it may wrap: of 64 bits it would
      // become an address of each access, and those leave no registers.
#pragma unroll 1
      for (uint32_t unit = own.split; unit < uint32_t(p.units); unit += uint32_t(p.splits))
        add_lines<R, C>(p, s, x, int64_t(unit) * (Shared::kWays * C.unroll) + way);
    }
    const State sum = combine_ways<R, C>(shared, s);
    const Part part = part_of_block<C>(p);
    const Columns<Shared::kColumns> to(p, part);
    const int64_t column = to.first + threadIdx.x;
    if (threadIdx.x < Shared::kColumns && column < p.inner)
      finish<R, C>(p, to.row, column, part.split, sum);
  }
};

}  // namespace tensorcraft::kernel::reduce
