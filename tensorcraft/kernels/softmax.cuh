// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/softmax/02_online.cuh"
#include "tensorcraft/ops/softmax/03_in_registers.cuh"
#include "tensorcraft/ops/softmax/plan.h"

// Softmax, its logarithm and the logarithm of its sum over the last axis. Compiled for each T and
// each of the three: in_registers with 16-byte accesses for every count of them a thread may hold
// (28 kernels for softmax; 12 for its logarithm, which knows no row as exactly full; 4 for the sum,
// rows of a warp, since online too reads a longer one once), and online, which takes all other rows
// (2).
namespace tensorcraft::kernels {
namespace detail::softmax {

using namespace kernel::softmax;

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.min_blocks)
    softmax_in_registers(const __grid_constant__ Params p) {
  in_registers<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.min_blocks)
    softmax_online(const __grid_constant__ Params p) {
  online<T, C::value.config>(p);
}

// The plan with every row taken as one that may leave slots empty.
inline Launch ragged_launch(const Params& p, int element_bytes, Form form) {
  Launch plan = in_registers_launch(p, element_bytes, {.form = form});
  const int64_t cols = p.cols;
  if (plan.config.group < 32) plan.config = row_config(cols, 128, 32, plan.config.vector);
  plan.config.whole = 0;
  plan.config.form = form;
  plan.blocks = div_ceil(p.rows, int64_t(plan.config.threads / plan.config.group));
  return plan;
}

template <class T, Form form>
struct Ragged {
  static constexpr auto list = [] {
    constexpr int kBlockSlots = form == Form::logsumexp ? 0 : kMaxSlots;
    std::array<Instance<Config>, kMaxWarpSlots + kBlockSlots> all{};
    for (int i = 0; i < int(all.size()); ++i) {
      const bool is_warp = i < kMaxWarpSlots;
      Config& config = all[size_t(i)].config;
      config.threads = is_warp ? 128 : 256;
      config.group = is_warp ? 32 : 256;
      config.vector = 16 / int(sizeof(T));
      config.slots = is_warp ? i + 1 : i + 1 - kMaxWarpSlots;
      config.form = form;
    }
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &softmax_in_registers<T, C>;
  }
};

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

template <class T, Form form>
struct Online {
  static constexpr std::array list{Instance<Config>{{.vector = 16 / int(sizeof(T)), .form = form}},
                                   Instance<Config>{{.vector = 1, .form = form}}};
  template <class C>
  static constexpr auto entry() {
    return &softmax_online<T, C>;
  }
};

// Checks, chooses and launches; `name` is the launcher's own.
template <class T, Form form>
std::string_view launch_form(const char* name, const T* in, T* out, int64_t rows, int64_t cols,
                             cudaStream_t stream, DebugInfo where) {
  validate_size(name, "rows", rows);
  validate_size(name, "cols", cols);
  if (rows == 0 || (cols == 0 && form != Form::logsumexp)) return {};
  if (cols > 0) validate_pointer(name, "in", in);
  validate_pointer(name, "out", out);
  const Params p = contiguous_params(in, out, rows, cols, form);
  if (in_registers_problem(p, sizeof(T), {.form = form}).empty()) {
    if constexpr (form == Form::softmax) {
      if (launch_listed<InRegisters<T>>(in_registers_launch(p, sizeof(T)), p, stream, where))
        return "in_registers";
    } else {
      if (launch_listed<Ragged<T, form>>(ragged_launch(p, sizeof(T), form), p, stream, where))
        return "in_registers";
    }
  }
  return launch_or_fail<Online<T, form>>("online", online_launch(p, sizeof(T), {.form = form}), p,
                                         stream, where);
}

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
  return s::launch_form<T, s::Form::softmax>("launch_softmax", in, out, rows, cols, stream, where);
}

// out = in - max - log(sum(exp(in - max))); the rest as launch_softmax.
template <class T>
std::string_view launch_log_softmax(const T* in, T* out, int64_t rows, int64_t cols,
                                    cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace s = detail::softmax;
  return s::launch_form<T, s::Form::log_softmax>("launch_log_softmax", in, out, rows, cols, stream,
                                                 where);
}

// out = log(sum(exp(in))) of each row, `rows` numbers apart from in: -inf for a row of nothing but
// -inf or of no elements, +inf for one with +inf, NaN for one with a NaN; the rest as
// launch_softmax.
template <class T>
std::string_view launch_logsumexp(const T* in, T* out, int64_t rows, int64_t cols,
                                  cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace s = detail::softmax;
  return s::launch_form<T, s::Form::logsumexp>("launch_logsumexp", in, out, rows, cols, stream,
                                               where);
}

}  // namespace tensorcraft::kernels
