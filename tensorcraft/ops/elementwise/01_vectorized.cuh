// SPDX-License-Identifier: Apache-2.0
#pragma once
// The widest type moves 16 bytes an access and a thread starts C.vectors of them for each input
// before it needs the first, so an SM has threads * vectors * 16 bytes a block in flight instead of
// threads * sizeof(T). Demands contiguous tensors at 16-byte boundaries, or an input of one
// element.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/elementwise/evaluate.cuh"

namespace tensorcraft::kernel::elementwise {

TC_DEVICE constexpr int larger(int a, int b) { return a > b ? a : b; }

// N elements from `at`, or N times the one element there is.
template <int N, bool single, bool streamed, class T>
TC_DEVICE Packed<T, N> load_input(const T* data, int64_t at, uint64_t policy) {
  if constexpr (single) {
    AlignedVector<T, N> v;
    for (int i = 0; i < N; ++i) v[i] = data[0];
    return bit_cast<Packed<T, N>>(v);
  } else if constexpr (streamed) {
    return Packed<T, N>::load_streamed(data + at, policy);
  } else {
    return Packed<T, N>::load(data + at);
  }
}

// N elements of the output, floats as whole vectors.
template <class Out, Operation operation, int N, class A, class B>
TC_DEVICE Packed<Out, N> evaluate_vector(const Packed<InMemory<A>, N>& a,
                                         const Packed<InMemory<B>, N>& b, const Params& p) {
  constexpr bool has_a = num_inputs(operation) > 0, has_b = num_inputs(operation) > 1;
  if constexpr (computes_floats(operation) && kIsFloat<A> && kIsFloat<B> && kIsFloat<Out>) {
    float x[N], y[N] = {};
    to_floats(x, a);
    if constexpr (has_b) to_floats(y, b);
    for (int i = 0; i < N; ++i) x[i] = compute<Out, operation>(x[i], y[i], p);
    return from_floats<Out, N>(x);
  } else {
    const auto x = bit_cast<AlignedVector<InMemory<A>, N>>(a);
    const auto y = bit_cast<AlignedVector<InMemory<B>, N>>(b);
    AlignedVector<Out, N> result;
    // An operand that the operation lacks was not loaded.
    for (int i = 0; i < N; ++i)
      result[i] = evaluate<Out, operation>(has_a ? A(x[i]) : A{}, has_b ? B(y[i]) : B{}, p);
    return bit_cast<Packed<Out, N>>(result);
  }
}

struct Vectorized {
  template <class A, class B, class Out, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int N = kVectorBytes / larger(larger(sizeof(A), sizeof(B)), sizeof(Out));
    constexpr bool has_a = num_inputs(C.operation) > 0, has_b = num_inputs(C.operation) > 1;
    const auto* a = static_cast<const InMemory<A>*>(p.a);
    const auto* b = static_cast<const InMemory<B>*>(p.b);
    Out* out = static_cast<Out*>(p.out);
    const int64_t first = (int64_t(blockIdx.x) * C.threads * C.vectors + threadIdx.x) * N;
    constexpr int64_t step = int64_t(C.threads) * N;

    constexpr bool streamed = C.vectors > 1;  // else few elements, which L2 holds
    const uint64_t policy = stream_policy(p.size * int64_t(sizeof(Out)));
    Packed<InMemory<A>, N> as[C.vectors];
    Packed<InMemory<B>, N> bs[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t at = first + v * step;
      if (at + N > p.size) continue;
      if constexpr (has_a) as[v] = load_input < N, C.single_a != 0, streamed > (a, at, policy);
      if constexpr (has_b) bs[v] = load_input < N, C.single_b != 0, streamed > (b, at, policy);
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t at = first + v * step;
      if (at + N > p.size) continue;
      evaluate_vector<Out, C.operation, N, A, B>(as[v], bs[v], p).store(out + at);
    }

    // The last size % N elements go to the first threads of the last block, one each.
    const int64_t tail = p.size / N * N + threadIdx.x;
    if (blockIdx.x + 1 < gridDim.x || tail >= p.size) return;
    A x{};
    B y{};
    if constexpr (has_a) x = A(a[C.single_a ? 0 : tail]);
    if constexpr (has_b) y = B(b[C.single_b ? 0 : tail]);
    out[tail] = evaluate<Out, C.operation>(x, y, p);
  }
};

}  // namespace tensorcraft::kernel::elementwise
