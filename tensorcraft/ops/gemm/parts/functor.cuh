// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums finished by a functor of the launcher's user, compiled into the rung: a float and its place
// in D to a float.
#include "tensorcraft/device/activation.cuh"
#include "tensorcraft/ops/gemm/parts/epilogue.cuh"

namespace tensorcraft::kernel::gemm {

template <class Functor>
struct FunctorParams : Params {
  Functor functor;
};

template <class Functor>
struct LastFunctor {
  const Functor& functor;

  TC_DEVICE LastFunctor(const Params& p, uint32_t)
      : functor(static_cast<const FunctorParams<Functor>&>(p).functor) {}
  template <int N>
  TC_DEVICE void apply(float (&x)[N], int64_t row, int64_t col, int count) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < count) x[i] = functor(x[i], row, col + i);
    }
  }
};

// The type of a result that a functor finishes.
template <class Out, class Functor>
struct FinishedBy {};
template <class Out, class Functor, Config C>
struct ResultOf<FinishedBy<Out, Functor>, C> {
  using Element = Out;
  using Last = LastFunctor<Functor>;
};

// A rung whose Params hold the functor.
template <class Rung, class Functor>
struct WithFunctor {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const FunctorParams<Functor>& p) {
    Rung::template run<T, FinishedBy<Out, Functor>, C>(p);
  }
};

// x + bias[col], then an activation.
template <class T, Activation kActivation = Activation::none>
struct AddBias {
  const T* bias;
  TC_DEVICE float operator()(float x, int64_t, int64_t col) const {
    return activate<kActivation>(x + float(bias[col]));
  }
};

}  // namespace tensorcraft::kernel::gemm
