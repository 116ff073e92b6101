// SPDX-License-Identifier: Apache-2.0
#pragma once
// The widest type moves 16 bytes an access and a thread starts C.vectors of them for each input
// before it needs the first, so an SM has threads * vectors * 16 bytes a block in flight instead of
// threads * sizeof(T). An input that repeats costs a division for each vector. Demands contiguous
// tensors at 16-byte boundaries, or an input of one element, or one that repeats as whole vectors.
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/elementwise/evaluate.cuh"

namespace tensorcraft::kernel::elementwise {

TC_DEVICE constexpr int larger(int a, int b) { return a > b ? a : b; }

enum class Input { streamed, kept, single, repeats };
// An input that is read once passes by L2 if there is much of it.
TC_DEVICE constexpr Input kind_of_input(const Config& c, int single, int repeats) {
  return single          ? Input::single
         : repeats       ? Input::repeats
         : c.vectors > 1 ? Input::streamed
                         : Input::kept;
}

// N elements for those of the output from `at` on.
template <int N, Input input, class T>
TC_DEVICE Packed<T, N> load_input(const T* data, int64_t at, const RowMap& map, uint64_t policy) {
  if constexpr (input == Input::single) {
    AlignedVector<T, N> v;
    for (int i = 0; i < N; ++i) v[i] = data[0];
    return bit_cast<Packed<T, N>>(v);
  } else if constexpr (input == Input::repeats) {
    return Packed<T, N>::load(data + at % period_of(map));
  } else if constexpr (input == Input::streamed) {
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

    constexpr Input kA = kind_of_input(C, C.single_a, C.repeats_a),
                    kB = kind_of_input(C, C.single_b, C.repeats_b);
    const uint64_t policy = stream_policy(p.size * int64_t(sizeof(Out)));
    Packed<InMemory<A>, N> as[C.vectors];
    Packed<InMemory<B>, N> bs[C.vectors];
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t at = first + v * step;
      if (at + N > p.size) continue;
      if constexpr (has_a) as[v] = load_input<N, kA>(a, at, p.a_map, policy);
      if constexpr (has_b) bs[v] = load_input<N, kB>(b, at, p.b_map, policy);
    }
#pragma unroll
    for (int v = 0; v < C.vectors; ++v) {
      const int64_t at = first + v * step;
      if (at + N > p.size) continue;
      evaluate_vector<Out, C.operation, N, A, B>(as[v], bs[v], p).store(out + at);
    }

    // The last size % N elements go to the first threads of the last block, one each. If an input
    // repeats there are none.
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
