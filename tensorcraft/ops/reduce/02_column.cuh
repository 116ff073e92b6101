// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: the outputs are neighbours, not the elements of one. C.group threads side by side
// take 16 bytes each of a line and so coalesce; the other threads of the block take other lines,
// C.unroll of them at once, and meet in shared memory at the end. Where the tiles are fewer than
// fill the GPU, blocks share the lines of a tile, and the last adds up the parts.
#include "tensorcraft/ops/reduce/partial.cuh"

namespace tensorcraft::kernel::reduce {

template <class State, Config C>
struct ColumnShared {
  static constexpr int kColumns = C.group * C.vector, kWays = C.threads / C.group;
  State parts[kWays][kColumns];
  int is_last;
};

// The first kColumns threads get one column each.
template <class R, Config C, class State>
TC_DEVICE State combine_ways(ColumnShared<State, C>& shared, const State (&s)[C.vector]) {
  using Shared = ColumnShared<State, C>;
  const int lane = int(threadIdx.x) % C.group, way = int(threadIdx.x) / C.group;
  for (int e = 0; e < C.vector; ++e) shared.parts[way][lane * C.vector + e] = s[e];
  __syncthreads();
  State sum = R::identity();
  if (threadIdx.x < Shared::kColumns)
    for (int w = 0; w < Shared::kWays; ++w) sum = R::combine(sum, shared.parts[w][threadIdx.x]);
  __syncthreads();  // parts may be written again
  return sum;
}

// Lines `first`, first + kWays, ... of one column after the other, each as one sequence.
template <class R, Config C, class T>
TC_DEVICE void add_lines(const Params& p, typename R::State (&s)[C.vector], const T* x,
                         int64_t first) {
  constexpr int kWays = C.threads / C.group;
  const int64_t rest = p.segments * p.cols - first;
  const int left = int(rest < kWays * C.unroll ? rest : kWays * C.unroll);
  Packed<T, C.vector> v[C.unroll];
  const T* line = x + first * p.step;
#pragma unroll
  for (int u = 0; u < C.unroll; ++u) {
    if constexpr (C.nested) {
      const int64_t at = first + u * kWays;
      line = x + p.segment_map.offset(at / p.cols) + at % p.cols * p.step;
    }
    if (u * kWays < left) v[u].load(line);
    line += kWays * p.step;
  }
  if ((C.unroll - 1) * kWays < left) {
#pragma unroll
    for (int e = 0; e < C.vector; ++e) {
      AlignedVector<T, C.unroll> column;
#pragma unroll
      for (int u = 0; u < C.unroll; ++u) column[u] = v[u].elements()[e];
      R::template add<C.unroll>(s[e], column, first, kWays);
    }
    return;
  }
#pragma unroll
  for (int u = 0; u < C.unroll; ++u)
    if (u * kWays < left)
      for (int e = 0; e < C.vector; ++e) add_one<R>(s[e], v[u].elements()[e], first + u * kWays);
}

template <class T, Config C>
TC_DEVICE void column(const Params& p) {
  using R = Reducer<T, C.operation>;
  using State = typename R::State;
  using Shared = ColumnShared<State, C>;
  auto& shared = static_shared<Shared>();
  const int lane = int(threadIdx.x) % C.group, way = int(threadIdx.x) / C.group;
  const uint32_t split = blockIdx.x % uint32_t(p.splits), block = blockIdx.x / uint32_t(p.splits);
  const int64_t row = block / uint32_t(p.tiles);
  const int64_t first = int64_t(block % uint32_t(p.tiles)) * Shared::kColumns;
  const int64_t own = first + lane * C.vector;  // the first of the columns that this thread reads

  State s[C.vector];
  for (State& one : s) one = R::identity();
  if (own < p.inner) {
    const T* x = static_cast<const T*>(p.x) + p.x_rows.offset<C.nested>(row) + own;
    for (int64_t unit = split; unit < p.units; unit += p.splits)
      add_lines<R, C>(p, s, x, unit * (Shared::kWays * C.unroll) + way);
  }
  State sum = combine_ways<R, C>(shared, s);
  const int64_t column = first + threadIdx.x;
  const bool has_column = threadIdx.x < Shared::kColumns && column < p.inner;
  if (p.splits > 1) {
    State* const parts = partial_states<State>(p) + row * p.splits * p.inner;
    if (has_column) parts[split * p.inner + column] = sum;
    if (!is_last_of(p, block, shared.is_last)) return;
    for (State& one : s) one = R::identity();
    if (own < p.inner)
      for (int64_t i = way; i < p.splits; i += Shared::kWays)
        for (int e = 0; e < C.vector; ++e) s[e] = R::combine(s[e], parts[i * p.inner + own + e]);
    sum = combine_ways<R, C>(shared, s);
  }
  if (has_column) store<R>(p, p.out_rows.offset<C.nested>(row) + column * p.out_inner, sum);
}

}  // namespace tensorcraft::kernel::reduce
