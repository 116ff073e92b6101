// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/softmax/02_online.cuh"
#include "tensorcraft/ops/softmax/03_in_registers.cuh"
#include "tensorcraft/ops/softmax/plan.h"

// Softmax, its logarithm and the logarithm of its sum over the last axis. Compiled for each T and
// each of the three: in_registers with 16-byte accesses for every division of a row (34 kernels of
// softmax for float, 20 for 16 bits; 15 and 10 for its logarithm, which knows no row as exactly
// full; 8 and 4 for the sum, rows of a warp, since online too reads a longer one once), and online,
// which takes all other rows (2).
namespace tensorcraft::kernels {
namespace detail::softmax {

using namespace kernel::softmax;

// The start with every row taken as one that may leave slots empty.
inline Start ragged(Start start, const CallParams& p) {
  Config& config = start.config;
  if (config.group < 32) {
    const Form form = config.form;
    config = warp_config(p.cols, config.vector);
    config.form = form;
  }
  config.whole = 0;
  start.blocks = div_ceil(p.rows, int64_t(config.threads / config.group));
  return start;
}

// How blocks divide the rows that in_registers gives them, in 16-byte accesses.
struct BlockShape {
  int threads, slots;
};
inline constexpr BlockShape kBlockShapes[] = {{256, 1},  {256, 2},  {512, 2},
                                              {1024, 2}, {1024, 3}, {1024, 4}};
inline constexpr BlockShape kRaggedShapes[] = {{256, 1}, {256, 2}, {256, 3},  {256, 4},
                                               {512, 3}, {512, 4}, {1024, 3}, {1024, 4}};
// A warp has the shortest rows of float, and rows end at 16384 columns.
template <int vector>
inline constexpr int kFirstShape = vector == 4 ? 1 : 0;
template <int vector>
inline constexpr int kNumBlockShapes = vector == 4 ? 5 : 4;
template <int vector>
inline constexpr int kNumRaggedShapes = vector == 4 ? 7 : 6;

template <class T, Form form>
struct Ragged {
  static constexpr int kVector = 16 / int(sizeof(T));
  static constexpr auto list = [] {
    constexpr int kWarps = max_warp_slots(kVector);
    constexpr int kBlocks = form == Form::logsumexp ? 0 : kNumRaggedShapes<kVector>;
    std::array<Instance<Config>, kWarps + kBlocks> all{};
    size_t count = 0;
    const auto add = [&](int threads, int group, int slots) {
      Config& config = all[count++].config;
      config.threads = threads;
      config.group = group;
      config.vector = kVector;
      config.slots = slots;
      config.form = form;
      all[count - 1].min_blocks = in_registers_min_blocks(config, Given{sizeof(T), form});
    };
    for (int slots = 1; slots <= kWarps; ++slots)
      add(op::warp_row_threads(32, slots * kVector), 32, slots);
    for (int i = 0; i < kBlocks; ++i) {
      const auto [threads, slots] = kRaggedShapes[kFirstShape<kVector> + i];
      add(threads, threads, slots);
    }
    return all;
  }();
};

template <class T>
struct Whole {
  static constexpr int kVector = 16 / int(sizeof(T));
  // One width for each Config: a group's slots full, and, but for half warps, one access less.
  static constexpr auto list = [] {
    constexpr int kWarps = max_warp_slots(kVector), kBlocks = kNumBlockShapes<kVector>;
    std::array<Instance<Config>, 3 * kWarps + 2 * kBlocks> all{};
    size_t count = 0;
    const auto add = [&](int threads, int group, int slots, bool whole) {
      const int64_t cols = int64_t(kVector) * (slots * group - !whole);
      Config config = row_config(cols, threads, group, kVector);
      all[count++] = {config, in_registers_min_blocks(config, Given{sizeof(T)})};
    };
    for (int slots = 1; slots <= kWarps; ++slots) {
      add(128, 16, slots, true);
      for (const bool whole : {true, false})
        add(op::warp_row_threads(32, slots * kVector), 32, slots, whole);
    }
    for (int i = 0; i < kBlocks; ++i) {
      const auto [threads, slots] = kBlockShapes[kFirstShape<kVector> + i];
      for (const bool whole : {true, false}) add(threads, threads, slots, whole);
    }
    return all;
  }();
};

template <class T, Form form>
struct Walked {
  static constexpr std::array list{Instance<Config>{{.vector = 16 / int(sizeof(T)), .form = form}},
                                   Instance<Config>{{.vector = 1, .form = form}}};
};

// Checks, chooses and launches; `name` is the launcher's own.
template <class T, Form form>
std::string_view launch_form(const char* name, const T* in, T* out, int64_t rows, int64_t cols,
                             cudaStream_t stream, DebugInfo where) {
  validate_sizes(name, {{"rows", rows}, {"cols", cols}});
  if (rows == 0 || (cols == 0 && form != Form::logsumexp)) return {};
  if (cols > 0) validate_pointer(name, "in", in);
  validate_pointer(name, "out", out);
  const CallParams p = contiguous_params(in, out, rows, cols, form);
  const Given given{.element_bytes = sizeof(T), .form = form};
  const op::Gpu gpu = current_gpu(where);
  if (const Choice held = in_registers(p, given, gpu); held.refusal.empty()) {
    using List = std::conditional_t<form == Form::softmax, Whole<T>, Ragged<T, form>>;
    const Start start = form == Form::softmax ? held.start : ragged(held.start, p);
    if (launch_listed<Kernels<InRegisters, List::list, T>>(start, p, stream, where))
      return "in_registers";
  }
  return launch_or_fail<Kernels<Online, Walked<T, form>::list, T>>(
      "online", online(p, given, gpu).start, p, stream, where);
}

}  // namespace detail::softmax

// out = exp(in - max) / sum(exp(in - max)) for each of `rows` rows of `cols` elements, one after
// another; out may be in. T: float, f16 or bf16, computed in float. -inf gives 0; a row with a NaN
// or +inf, or of nothing but -inf, becomes NaN. Returns the name of the variant that was launched,
// empty if there is nothing to do. Throws std::invalid_argument for a negative size or a null
// array, std::runtime_error if CUDA refuses; enqueues on `stream` and waits for nothing.
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
