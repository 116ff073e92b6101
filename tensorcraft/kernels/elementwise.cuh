// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/elementwise/00_naive.cuh"
#include "tensorcraft/ops/elementwise/01_vectorized.cuh"
#include "tensorcraft/ops/elementwise/plan.h"

// Elementwise operators on arrays of n neighbours. Compiled for each operation and types:
// vectorized with few and with many accesses in flight, and naive for addresses that are no
// multiple of 16 (3 kernels).
namespace tensorcraft::kernels {
namespace detail::elementwise {

using namespace kernel::elementwise;

template <Operation operation, int widest>
inline constexpr std::array kVectorized{Instance<Config>{{.operation = operation, .vectors = 1}},
                                        Instance<Config>{many_config(operation, widest)}};
template <Operation operation>
inline constexpr std::array kNaive{Instance<Config>{{.operation = operation, .vectors = 1}}};

template <Operation operation, class A, class B, class Out>
std::string_view launch(const A* a, const B* b, Out* out, int64_t n, float alpha, uint64_t value,
                        cudaStream_t stream, DebugInfo where) {
  constexpr const char* kName = "launch_elementwise";
  validate_size(kName, "n", n);
  if (n == 0) return {};
  if constexpr (num_inputs(operation) > 0) validate_pointer(kName, "a", a);
  if constexpr (num_inputs(operation) > 1) validate_pointer(kName, "b", b);
  validate_pointer(kName, "out", out);
  constexpr int kWidest = int(std::max({sizeof(A), sizeof(B), sizeof(Out)}));
  return launch_ladder(
      kRungs, contiguous_params(a, b, out, n, alpha, value), Given{operation, kWidest}, stream,
      where, Kernels<Vectorized, kVectorized<operation, kWidest>, A, B, Out>{"vectorized"},
      Kernels<Naive, kNaive<operation>, A, B, Out>{"naive"});
}

// Narrow floats reach a function as float, unless it takes them as they are.
template <class Function, class... T>
TC_DEVICE auto apply(const Function& function, T... x) {
  if constexpr (std::is_invocable_v<const Function&, T...>)
    return function(x...);
  else
    return function(float(x)...);
}

// A user's function over whole vectors, then over the rest.
template <int kVector, class In, class Out, class Function>
__global__ void __launch_bounds__(256)
    elementwise_function(const In* in, Out* out, int64_t n, Function function) {
  const int64_t first = int64_t(blockIdx.x) * 256 + threadIdx.x, step = int64_t(gridDim.x) * 256;
  for (int64_t i = first; i < n / kVector; i += step) {
    const auto x = load_vector<kVector>(in + i * kVector);
    AlignedVector<Out, kVector> y;
    for (int e = 0; e < kVector; ++e) y[e] = Out(apply(function, x[e]));
    store_vector(out + i * kVector, y);
  }
  for (int64_t i = n / kVector * kVector + first; i < n; i += step)
    out[i] = Out(apply(function, in[i]));
}

template <int kVector, class A, class B, class Out, class Function>
__global__ void __launch_bounds__(256)
    elementwise_function_of_two(const A* a, const B* b, Out* out, int64_t n, Function function) {
  const int64_t first = int64_t(blockIdx.x) * 256 + threadIdx.x, step = int64_t(gridDim.x) * 256;
  for (int64_t i = first; i < n / kVector; i += step) {
    const auto x = load_vector<kVector>(a + i * kVector);
    const auto y = load_vector<kVector>(b + i * kVector);
    AlignedVector<Out, kVector> z;
    for (int e = 0; e < kVector; ++e) z[e] = Out(apply(function, x[e], y[e]));
    store_vector(out + i * kVector, z);
  }
  for (int64_t i = n / kVector * kVector + first; i < n; i += step)
    out[i] = Out(apply(function, a[i], b[i]));
}

// Elements of one access: 4, or as many as 16 bytes hold.
template <class... T>
inline constexpr int kFunctionVector = std::min(4, 16 / int(std::max({sizeof(T)...})));

inline dim3 function_grid(int64_t n, int vector) {
  constexpr int64_t kMaxBlocks = 65535;
  return dim3(uint32_t(std::min(div_ceil(div_ceil(n, int64_t(vector)), int64_t(256)), kMaxBlocks)));
}

template <int kVector, class T>
bool is_aligned_for(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % (sizeof(T) * kVector) == 0;
}

}  // namespace detail::elementwise

// out[i] = function(in[i]) for n elements; `function` is any callable with a __device__ operator(),
// a lambda under nvcc --extended-lambda too; f16, bf16 and float8 reach it as float. Blocks of 256
// threads, 4 elements an access if the addresses allow it, at most 65535 blocks. n = 0 does
// nothing. Errors and stream as launch_softmax.
template <class In, class Out, class Function>
  requires(!std::is_pointer_v<Function> && !std::is_arithmetic_v<Function>)
void launch_elementwise(const In* in, Out* out, int64_t n, Function function,
                        cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace e = detail::elementwise;
  validate_size("launch_elementwise", "n", n);
  if (n == 0) return;
  validate_arrays("launch_elementwise", {{"in", in}, {"out", out}});
  constexpr int kVector = e::kFunctionVector<In, Out>;
  const KernelConfig config{.stream = stream};
  if (e::is_aligned_for<kVector>(in) && e::is_aligned_for<kVector>(out))
    LaunchKernel(e::function_grid(n, kVector), config, where)(
        &e::elementwise_function<kVector, In, Out, Function>, in, out, n, function);
  else
    LaunchKernel(e::function_grid(n, 1), config, where)(
        &e::elementwise_function<1, In, Out, Function>, in, out, n, function);
}

// out[i] = function(a[i], b[i]); otherwise the same.
template <class A, class B, class Out, class Function>
  requires(!std::is_pointer_v<Function>)
void launch_elementwise(const A* a, const B* b, Out* out, int64_t n, Function function,
                        cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace e = detail::elementwise;
  validate_size("launch_elementwise", "n", n);
  if (n == 0) return;
  validate_arrays("launch_elementwise", {{"a", a}, {"b", b}, {"out", out}});
  constexpr int kVector = e::kFunctionVector<A, B, Out>;
  const KernelConfig config{.stream = stream};
  if (e::is_aligned_for<kVector>(a) && e::is_aligned_for<kVector>(b) &&
      e::is_aligned_for<kVector>(out))
    LaunchKernel(e::function_grid(n, kVector), config, where)(
        &e::elementwise_function_of_two<kVector, A, B, Out, Function>, a, b, out, n, function);
  else
    LaunchKernel(e::function_grid(n, 1), config, where)(
        &e::elementwise_function_of_two<1, A, B, Out, Function>, a, b, out, n, function);
}

// The library's operators by its rungs. T: as the operators of these names. Each returns the name
// of the variant, empty for n = 0, and out may be an input. Floats are computed in float and
// rounded once; int32_t and int64_t wrap. maximum and minimum give NaN if either input is NaN.
// divide computes in float.
#define TC_BINARY_LAUNCHER(name)                                                                 \
  template <class A, class B, class Out>                                                         \
  std::string_view launch_##name(const A* a, const B* b, Out* out, int64_t n,                    \
                                 cudaStream_t stream = nullptr, DebugInfo where = {}) {          \
    return detail::elementwise::launch<kernel::elementwise::Operation::name>(a, b, out, n, 0, 0, \
                                                                             stream, where);     \
  }
#define TC_UNARY_LAUNCHER(name)                                                                    \
  template <class T>                                                                               \
  std::string_view launch_##name(const T* in, T* out, int64_t n, cudaStream_t stream = nullptr,    \
                                 DebugInfo where = {}) {                                           \
    return detail::elementwise::launch<kernel::elementwise::Operation::name>(in, in, out, n, 0, 0, \
                                                                             stream, where);       \
  }
#define TC_SLOPED_LAUNCHER(name, parameter, value)                                        \
  template <class T>                                                                      \
  std::string_view launch_##name(const T* in, T* out, int64_t n, float parameter = value, \
                                 cudaStream_t stream = nullptr, DebugInfo where = {}) {   \
    return detail::elementwise::launch<kernel::elementwise::Operation::name>(             \
        in, in, out, n, parameter, 0, stream, where);                                     \
  }
TC_BINARY_LAUNCHER(add)
TC_BINARY_LAUNCHER(subtract)
TC_BINARY_LAUNCHER(multiply)
TC_BINARY_LAUNCHER(divide)
TC_BINARY_LAUNCHER(maximum)
TC_BINARY_LAUNCHER(minimum)
TC_BINARY_LAUNCHER(pow)
TC_UNARY_LAUNCHER(negative)
TC_UNARY_LAUNCHER(abs)
TC_UNARY_LAUNCHER(round)
TC_UNARY_LAUNCHER(exp)
TC_UNARY_LAUNCHER(log)
TC_UNARY_LAUNCHER(sqrt)
TC_UNARY_LAUNCHER(rsqrt)
TC_UNARY_LAUNCHER(tanh)
TC_UNARY_LAUNCHER(sigmoid)
TC_UNARY_LAUNCHER(relu)
TC_UNARY_LAUNCHER(silu)
TC_UNARY_LAUNCHER(gelu)
TC_UNARY_LAUNCHER(gelu_tanh)
TC_SLOPED_LAUNCHER(leaky_relu, alpha, 0.01f)
TC_SLOPED_LAUNCHER(elu, alpha, 1.0f)
TC_SLOPED_LAUNCHER(swish, beta, 1.0f)
#undef TC_BINARY_LAUNCHER
#undef TC_UNARY_LAUNCHER
#undef TC_SLOPED_LAUNCHER

// Copies bits to another place.
template <class T>
std::string_view launch_copy(const T* in, T* out, int64_t n, cudaStream_t stream = nullptr,
                             DebugInfo where = {}) {
  using Word = detail::Bits<sizeof(T)>;
  const auto* from = reinterpret_cast<const Word*>(in);
  return detail::elementwise::launch<kernel::elementwise::Operation::copy>(
      from, from, reinterpret_cast<Word*>(out), n, 0, 0, stream, where);
}

// The elements in another type: to a float rounds to nearest even by way of float32, float8
// saturates; float to integer drops the fraction, saturates, and makes 0 of NaN.
template <class T, class Out>
std::string_view launch_cast(const T* in, Out* out, int64_t n, cudaStream_t stream = nullptr,
                             DebugInfo where = {}) {
  if constexpr (std::is_same_v<T, Out>)
    return launch_copy(in, out, n, stream, where);
  else
    return detail::elementwise::launch<kernel::elementwise::Operation::astype>(in, in, out, n, 0, 0,
                                                                               stream, where);
}

// One value everywhere.
template <class T>
std::string_view launch_fill(T* out, int64_t n, T value, cudaStream_t stream = nullptr,
                             DebugInfo where = {}) {
  using Word = detail::Bits<sizeof(T)>;
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  auto* words = reinterpret_cast<Word*>(out);
  return detail::elementwise::launch<kernel::elementwise::Operation::fill>(words, words, words, n,
                                                                           0, bits, stream, where);
}

}  // namespace tensorcraft::kernels
