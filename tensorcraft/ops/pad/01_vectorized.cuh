// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output is one run of memory and is written in units of 16 bytes, wherever its rows begin:
//   stores and places that are looked up = bytes / 16, not bytes / sizeof(T).
// A unit inside x that is aligned there too is one load; else its elements are loaded each, from
// lines that neighbours have brought. A unit reaches into one further row at most, so rows have 16
// bytes or more. A thread loads C.vectors units before it stores the first.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/pad/params.h"

namespace tensorcraft::kernel::pad {

// Elements [begin, end) of a unit, which it takes from one row; `x` would be its element 0.
template <class T>
struct Part {
  const T* x;
  int64_t begin, end;
};

// The part of row `row` that a unit beginning at its column `col` takes; a column may be negative.
template <class T, Config C>
TC_DEVICE Part<T> part_of(const Params& p, Index<C> row, int64_t col) {
  const int last = p.axes.count - 1;
  const Place at = p.axes.place(row, last);
  const int64_t to_x = p.axes.before[last] - col;  // elements of the unit in front of x
  if (!at.is_inside || p.axes.inside[last] == 0) return {nullptr, 0, 0};
  return {static_cast<const T*>(p.x) + (at.x - to_x * p.axes.x_stride[last]), to_x,
          to_x + p.axes.inside[last]};
}

template <class T, Config C>
TC_DEVICE AlignedVector<T, kVectorSize<T>> unit_at(const Params& p, int64_t i) {
  constexpr int V = kVectorSize<T>;
  const int last = p.axes.count - 1;
  const int64_t size = p.axes.size[last], step = p.axes.x_stride[last];
  const Index<C> row = Index<C>(i) / Index<C>(size);
  const int64_t col = i - int64_t(row) * size;
  const Part<T> here = part_of<T, C>(p, row, col);
  if (here.begin <= 0 && here.end >= V && step == 1 &&
      reinterpret_cast<uint64_t>(here.x) % kVectorBytes == 0)
    return load_vector<V>(here.x);

  AlignedVector<T, V> unit;
  const int64_t left = size - col;  // elements of the unit in this row
  Part<T> next{nullptr, 0, 0};
  if (left < V && i + left < p.count) next = part_of<T, C>(p, row + 1, -left);
#pragma unroll
  for (int k = 0; k < V; ++k) {
    const bool is_here = k < left;  // a reference to one of both would put them into memory
    const int64_t begin = is_here ? here.begin : next.begin, end = is_here ? here.end : next.end;
    unit[k] = T(p.value);
    if (k >= begin && k < end) unit[k] = (is_here ? here.x : next.x)[k * step];
  }
  return unit;
}

struct Vectorized {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int V = kVectorSize<T>;
    T* const out = static_cast<T*>(p.out);
    const int64_t first = (int64_t(blockIdx.x) * C.threads * C.vectors + threadIdx.x) * V;
    AlignedVector<T, V> units[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v)
      if (const int64_t i = first + v * C.threads * V; i < p.count) units[v] = unit_at<T, C>(p, i);
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t i = first + v * C.threads * V;
      if (i + V <= p.count) {
        store_vector<V>(out + i, units[v]);
      } else {
#pragma unroll
        for (int k = 0; k < V; ++k)
          if (i + k < p.count) out[i + k] = units[v][k];
      }
    }
  }
};

}  // namespace tensorcraft::kernel::pad
