// SPDX-License-Identifier: Apache-2.0
#pragma once
// The expression is compiled: the host writes it as a struct E of the functors
// (expression_text.cpp) and its values stay in registers, so a kernel costs what its bytes cost
// whatever the steps are. `strided` takes any strides, one element a thread. `fused` adds the
// accesses of 01_vectorized.cuh: the last axis of out is whole vectors at 16-byte boundaries, and
// of each input too unless one element serves a vector; a division for each other axis and vector,
// not element, is left.
#include "tensorcraft/device/expression/compiled.cuh"
#include "tensorcraft/device/streamed.cuh"
#include "tensorcraft/ops/elementwise/program.cuh"

namespace tensorcraft::kernel::elementwise {

// Where an element of each tensor is, out first.
template <int kTensors>
struct Offsets {
  int64_t at[kTensors];
};

template <int kTensors, class Index>
TC_DEVICE Offsets<kTensors> nested_offsets(const ExpressionParams& p, Index rest) {
  Offsets<kTensors> o{};
#pragma unroll 1
  for (int axis = p.axes - 1; axis > 0; --axis) {
    const Index outer = rest / Index(p.shape[axis]);
    const int64_t inner = rest - outer * Index(p.shape[axis]);
    for (int t = 0; t < kTensors; ++t) o.at[t] += inner * p.strides[t][axis];
    rest = outer;
  }
  for (int t = 0; t < kTensors; ++t) o.at[t] += int64_t(rest) * p.strides[t][0];
  return o;
}

template <int kTensors, ExpressionConfig C>
TC_DEVICE Offsets<kTensors> offsets(const ExpressionParams& p, int64_t element) {
  if constexpr (!C.nested) {
    Offsets<kTensors> o;
    for (int t = 0; t < kTensors; ++t) o.at[t] = element * p.strides[t][0];
    return o;
  } else if constexpr (C.wide) {
    return nested_offsets<kTensors>(p, element);
  } else {
    return nested_offsets<kTensors>(p, uint32_t(element));
  }
}

// N neighbours of an input, or N times the one element there is.
template <int N, bool kShared, class T>
TC_DEVICE AlignedVector<T, N> load_operand(const ExpressionParams& p, int input, int64_t at,
                                           uint64_t policy) {
  const T* data = static_cast<const T*>(p.inputs[input]) + at;
  if constexpr (kShared) {
    AlignedVector<T, N> v;
    for (int i = 0; i < N; ++i) v[i] = data[0];
    return v;
  } else {
    return load_streamed<N>(data, policy);
  }
}

template <class E>
struct StridedExpression {
  template <ExpressionConfig C>
  TC_DEVICE static void run(const ExpressionParams& p) {
    const int64_t element = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    if (element >= p.size) return;
    const auto o = offsets<E::kTensors, C>(p, element);
    typename E::template Inputs<1, 0> in;
    in.load(p, o, 0);
    static_cast<typename E::Out*>(p.out)[o.at[0]] = in.compute(p, 0);
  }
};

template <class E>
struct FusedExpression {
  template <ExpressionConfig C>
  TC_DEVICE static void run(const ExpressionParams& p) {
    using Out = typename E::Out;
    constexpr int N = kVectorBytes / E::kWidest;
    Out* out = static_cast<Out*>(p.out);
    const int64_t first = (int64_t(blockIdx.x) * C.threads * C.vectors + threadIdx.x) * N;
    constexpr int64_t step = int64_t(C.threads) * N;

    const uint64_t policy = stream_policy(p.size * int64_t(sizeof(Out)));
    typename E::template Inputs<N, C.shared> in[C.vectors];
    int64_t to[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t element = first + v * step;
      if (element + N > p.size) continue;
      const auto o = offsets<E::kTensors, C>(p, element);
      in[v].load(p, o, policy);
      to[v] = o.at[0];
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      if (first + v * step + N > p.size) continue;
      AlignedVector<Out, N> result;
      for (int i = 0; i < N; ++i) result[i] = in[v].compute(p, i);
      store_vector(out + to[v], result);
    }

    // Several axes are whole vectors; of one, the last size % N elements go to the first
    // threads of the last block, one each.
    if constexpr (!C.nested) {
      const int64_t tail = p.size / N * N + threadIdx.x;
      if (blockIdx.x + 1 < gridDim.x || tail >= p.size) return;
      typename E::template Inputs<1, 0> last;
      last.load(p, offsets<E::kTensors, C>(p, tail), policy);
      out[tail] = last.compute(p, 0);
    }
  }
};

}  // namespace tensorcraft::kernel::elementwise
