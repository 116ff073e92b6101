// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/cumulative_sum/00_naive.cuh"
#include "tensorcraft/ops/cumulative_sum/01_row.cuh"
#include "tensorcraft/ops/cumulative_sum/plan.h"

// Sums along rows. Compiled for each T: row for short and for long rows, for floats with 16-byte
// accesses too, and naive for rows of up to 32 elements (5 kernels, 3 for an integer).
namespace tensorcraft::kernels {
namespace detail::cumulative_sum {

using namespace kernel::cumulative_sum;

template <class T>
constexpr auto kRows = [] {
  std::array<Instance<Config>, FloatingPoint<T> ? 4 : 2> all{};
  for (int i = 0; i < int(all.size()); ++i) {
    Config config{.threads = i % 2 ? kShortRowThreads : kThreads,
                  .vector = FloatingPoint<T> ? 16 / int(sizeof(T)) : 4,
                  .wide = i / 2};
    all[size_t(i)] = {config, min_blocks(config)};
  }
  return all;
}();
inline constexpr std::array kSingle{Instance<Config>{{.threads = 128, .vector = 8}}};

// The library's choice.
template <class T>
Taken<Params, Config> taken(const Params& p, const op::Gpu& gpu, DebugInfo where = {}) {
  return take(kRungs, p, Given{FloatingPoint<T>, int(sizeof(T))}, gpu, where);
}

}  // namespace detail::cumulative_sum

// How much memory lets blocks share a row, if rows are too few to keep the current device busy;
// often 0.
template <class T>
size_t cumulative_sum_workspace_bytes(const T* in, int64_t rows, int64_t cols,
                                      DebugInfo where = {}) {
  namespace c = detail::cumulative_sum;
  if (rows == 0 || cols == 0) return 0;
  const auto p = c::contiguous_params(in, nullptr, rows, cols);
  return c::workspace_bytes(c::taken<T>(p, current_gpu(where), where).params);
}

// out[i] = in[0] + ... + in[i] along each of `rows` rows of `cols` elements, one after another.
// T: float, f16 or bf16, added in float, or an integer, which wraps; Out: T, or int64_t for
// integers. `workspace` has cumulative_sum_workspace_bytes() and belongs to this call until it is
// done; null is slower for few long rows and adds in another order. out may not be in. Returns the
// name of the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Out>
std::string_view launch_cumulative_sum(const T* in, Out* out, int64_t rows, int64_t cols,
                                       void* workspace = nullptr, cudaStream_t stream = nullptr,
                                       DebugInfo where = {}) {
  namespace c = detail::cumulative_sum;
  static_assert(std::is_same_v<Out, typename c::Sums<T>::Out>,
                "out is not of the type that sums of these elements have");
  validate_sizes("launch_cumulative_sum", {{"rows", rows}, {"cols", cols}});
  if (rows == 0 || cols == 0) return {};
  validate_arrays("launch_cumulative_sum", {{"in", in}, {"out", out}});
  const op::Gpu gpu =
      workspace ? current_gpu(where) : op::Gpu{};  // without multiprocessors: no blocks share
  auto [variant, start, p] = c::taken<T>(c::contiguous_params(in, out, rows, cols), gpu, where);
  p.workspace = workspace;
  if (const size_t zeroed = c::workspace_zeroed(p); zeroed > 0)
    check_cuda(cudaMemsetAsync(workspace, 0, zeroed, stream), where.file_name(),
               long(where.line()));
  if (variant == "row")
    return launch_or_fail<Kernels<c::Row, c::kRows<T>, T>>(variant, start, p, stream, where);
  return launch_or_fail<Kernels<c::Naive, c::kSingle, T>>(variant, start, p, stream, where);
}

}  // namespace tensorcraft::kernels
