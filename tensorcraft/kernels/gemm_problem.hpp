// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/ops/gemm/plan.h"

#include <optional>

// A product of raw pointers as the plan header of gemm takes it. Plain C++ of the host.
namespace tensorcraft::kernels::detail::gemm {

using namespace kernel::gemm;

// A matrix as the plan header wants to see it.
struct View {
  void* data;
  int64_t shapes[2], strides[2];
  size_t bytes;  // of an element
  int rank() const { return 2; }
  int64_t shape(int i) const { return shapes[i]; }
  int64_t stride(int i) const { return strides[i]; }
  bool is_aligned(size_t to) const { return reinterpret_cast<uintptr_t>(data) % to == 0; }
  Matrix matrix() const { return matrix_of(data, shapes[0], shapes[1], strides[0], strides[1]); }
};
inline int64_t row_stride(const View& v) { return v.strides[0]; }
inline int64_t col_stride(const View& v) { return v.strides[1]; }
inline size_t element_bytes(const View& v) { return v.bytes; }

// rows x cols in the order of a layout.
template <class T>
View view(const T* data, int64_t rows, int64_t cols, Layout layout = Layout::row_major) {
  const bool by_rows = layout == Layout::row_major;
  return {const_cast<T*>(data), {rows, cols}, {by_rows ? cols : 1, by_rows ? 1 : rows}, sizeof(T)};
}

struct Problem {
  View d, a, b;
  std::optional<View> c;
  float alpha, beta;
  Layout a_layout, b_layout;  // what the kernels were compiled for
  std::optional<View> bias = {};
  Activation activation = Activation::none;
  int64_t m() const { return d.shape(0); }
  int64_t n() const { return d.shape(1); }
  int64_t k() const { return a.shape(1); }
  int64_t batch() const { return 1; }
  Params params() const {
    Params p{.m = m(), .n = n(), .k = k(), .a = a.matrix(), .b = b.matrix(), .d = d.matrix()};
    if (c) p.c = c->matrix();
    p.alpha = alpha;
    p.beta = beta;
    return p;
  }
};

// Reads C only if it counts: at beta = 0 it may hold NaN.
template <class T, class Out>
Problem make_problem(const T* a, const T* b, const Out* c, Out* d, int64_t m, int64_t n, int64_t k,
                     float alpha, float beta, Layout a_layout, Layout b_layout) {
  Problem q{.d = view(d, m, n),
            .a = view(a, m, k, a_layout),
            .b = view(b, k, n, b_layout),
            .alpha = alpha,
            .beta = beta,
            .a_layout = a_layout,
            .b_layout = b_layout};
  if (beta != 0) q.c = view(c, m, n);
  return q;
}

}  // namespace tensorcraft::kernels::detail::gemm
