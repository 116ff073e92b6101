// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/softmax/02_online.cuh"
#include "tensorcraft/ops/softmax/03_in_registers.cuh"
#include "tensorcraft/ops/softmax/plan.h"

// Softmax over the last axis. Compiled for each T: in_registers with 16-byte accesses for every
// count of them a thread may hold (28 kernels), and online, which takes all other rows (2).
namespace tensorcraft::kernels {
namespace detail::softmax {

using namespace kernel::softmax;

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    softmax_in_registers(const __grid_constant__ Params p) {
  in_registers<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    softmax_online(const __grid_constant__ Params p) {
  online<T, C::value.config>(p);
}

template <class T>
struct InRegisters {
  static constexpr int kVector = 16 / int(sizeof(T));
  // One width for each Config: a group's slots full, and, but for half warps, one access less.
  static constexpr auto list = [] {
    constexpr int kInstances = 3 * kMaxWarpSlots + 2 * kMaxSlots;
    std::array<Instance<Config>, kInstances> all{};
    size_t count = 0;
    const auto add = [&](int threads, int group, int slots, bool whole) {
      const int64_t cols = int64_t(kVector) * (slots * group - !whole);
      all[count++] = {row_config(cols, threads, group, kVector)};
    };
    for (int slots = 1; slots <= kMaxWarpSlots; ++slots) {
      add(128, 16, slots, true);
      for (const bool whole : {true, false}) add(128, 32, slots, whole);
    }
    for (int slots = 1; slots <= kMaxSlots; ++slots)
      for (const bool whole : {true, false}) add(256, 256, slots, whole);
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &softmax_in_registers<T, C>;
  }
};

template <class T>
struct Online {
  static constexpr std::array list{Instance<Config>{{.vector = 16 / int(sizeof(T))}},
                                   Instance<Config>{{.vector = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &softmax_online<T, C>;
  }
};

}  // namespace detail::softmax

// out = exp(in - max) / sum(exp(in - max)) for each of `rows` rows of `cols` elements, one behind
// another; out may be in. T: float, f16 or bf16, computed in float. -inf gives 0; a row with a NaN
// or +inf, or of nothing but -inf, becomes NaN. Returns the name of the variant that was launched,
// empty where there is nothing to do. Throws std::invalid_argument for a negative size or a null
// array, std::runtime_error where CUDA refuses; enqueues on `stream` and waits for nothing.
template <class T>
std::string_view launch_softmax(const T* in, T* out, int64_t rows, int64_t cols,
                                cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace s = detail::softmax;
  validate_size("launch_softmax", "rows", rows);
  validate_size("launch_softmax", "cols", cols);
  if (rows == 0 || cols == 0) return {};
  validate_pointer("launch_softmax", "in", in);
  validate_pointer("launch_softmax", "out", out);
  const s::Params p = s::contiguous_params(in, out, rows, cols);
  if (s::in_registers_problem(p, sizeof(T)).empty() &&
      launch_listed<s::InRegisters<T>>(s::in_registers_launch(p, sizeof(T)), p, stream, where))
    return "in_registers";
  return launch_or_fail<s::Online<T>>("online", s::online_launch(p, sizeof(T)), p, stream, where);
}

}  // namespace tensorcraft::kernels
