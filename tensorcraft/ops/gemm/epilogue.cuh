// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gemm/tile.cuh"

// What every rung does with a finished sum: scale, add, activate, round once, store.
namespace tensorcraft::kernel::gemm {

// The matrices of a block's batch entry, and bias. C is null if beta is 0: it may hold NaN then,
// and its strides are not computed with.
template <class T, class Out, Config C>
struct Epilogue {
  const Params& p;
  Out* d;
  const Out* c;
  const T* bias;

  TC_DEVICE Epilogue(const Params& params, uint32_t batch)
      : p(params),
        d(batch_entry<Out>(params, params.d, batch)),
        c(C.has_c && params.beta != 0 ? batch_entry<Out>(params, params.c, batch) : nullptr),
        bias(static_cast<const T*>(params.bias)) {}

  // Stores N neighbours of a row from column `col`; what is outside D is dropped. With vectors
  // of N the host has checked that D's columns come in aligned groups of N.
  template <int N>
  TC_DEVICE void store(const float (&sums)[N], int64_t row, int64_t col) const {
    if (row >= p.m || col >= p.n) return;
    const int count = min_of(p.n - col, N);
    float x[N];
    finish(x, sums, row, col, count);
    if constexpr (N > 1 && C.d_vector >= N) {
      AlignedVector<Out, N> out;
      for (int i = 0; i < N; ++i) out[i] = Out(x[i]);
      store_vector(d + row * p.d.row_stride + col, out);
    } else {
      for (int i = 0; i < N; ++i) {
        if (i < count) d[row * p.d.row_stride + (col + i) * p.d.col_stride] = Out(x[i]);
      }
    }
  }

  // act(alpha sum + beta C + bias) of N neighbours from column `col`, of which `count` are in D.
  template <int N>
  TC_DEVICE void finish(float (&x)[N], const float (&sums)[N], int64_t row, int64_t col,
                        int count) const {
    for (int i = 0; i < N; ++i) x[i] = p.alpha * sums[i];
    if constexpr (C.has_c) {
      if (c) {
        for (int i = 0; i < N; ++i) {
          if (i < count)
            x[i] += p.beta * float(c[row * p.c.row_stride + (col + i) * p.c.col_stride]);
        }
      }
    }
    if constexpr (C.has_bias) {
      for (int i = 0; i < N; ++i) {
        if (i < count) x[i] += float(bias[(col + i) * p.bias_stride]);
      }
    }
    for (int i = 0; i < N; ++i) x[i] = activate<C.activation>(x[i]);
  }
};

}  // namespace tensorcraft::kernel::gemm
