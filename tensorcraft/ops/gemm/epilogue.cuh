// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gemm/tile.cuh"

// What every rung does with a finished sum: scale, add, activate, round once, store.
namespace tensorcraft::kernel::gemm {

template <Activation A>
TC_DEVICE float activate(float x) {
  if constexpr (A == Activation::relu) return tensorcraft::relu(x);
  if constexpr (A == Activation::gelu) return tensorcraft::gelu(x);
  if constexpr (A == Activation::gelu_tanh) return tensorcraft::gelu_tanh(x);
  if constexpr (A == Activation::silu) return tensorcraft::silu(x);
  return x;
}

// The rows of D, C and bias that a block's batch entry owns.
template <class T, class Out, Config C>
struct Epilogue {
  const Params& p;
  Out* d;
  const Out* c;
  const T* bias;

  TC_DEVICE Epilogue(const Params& params, uint32_t batch)
      : p(params),
        d(batch_entry<Out>(params, params.d, batch)),
        c(C.has_c ? batch_entry<Out>(params, params.c, batch) : nullptr),
        bias(static_cast<const T*>(params.bias)) {}

  // act(alpha sum + beta C + bias). C is read only when beta is not 0: it may hold NaN otherwise.
  TC_DEVICE float finish(float sum, int64_t row, int64_t col) const {
    float x = p.alpha * sum;
    if constexpr (C.has_c) {
      if (p.beta != 0) x += p.beta * float(c[row * p.c.row_stride + col * p.c.col_stride]);
    }
    if constexpr (C.has_bias) x += float(bias[col * p.bias_stride]);
    return activate<C.activation>(x);
  }

  // Stores N neighbours of a row from column `col`; what lies outside D is dropped. With vectors
  // of N the host has checked that D's columns come in aligned groups of N.
  template <int N>
  TC_DEVICE void store(const float (&sums)[N], int64_t row, int64_t col) const {
    if (row >= p.m) return;
    if constexpr (N > 1 && C.d_vector >= N) {
      if (col >= p.n) return;
      AlignedVector<Out, N> out;
      for (int i = 0; i < N; ++i) out[i] = Out(finish(sums[i], row, col + i));
      store_vector(d + row * p.d.row_stride + col, out);
    } else {
      for (int i = 0; i < N; ++i) {
        if (col + i >= p.n) return;
        d[row * p.d.row_stride + (col + i) * p.d.col_stride] = Out(finish(sums[i], row, col + i));
      }
    }
  }
};

}  // namespace tensorcraft::kernel::gemm
