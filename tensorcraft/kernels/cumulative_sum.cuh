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

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    cumulative_sum_row(const __grid_constant__ Params p) {
  begin_kernel();
  row<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    cumulative_sum_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<T, C::value.config>(p);
}

template <class T>
struct Rows {
  static constexpr int kVector = FloatingPoint<T> ? 16 / int(sizeof(T)) : 4;
  static constexpr auto list = [] {
    std::array<Instance<Config>, FloatingPoint<T> ? 4 : 2> all{};
    for (int i = 0; i < int(all.size()); ++i) {
      Config config{
          .threads = i % 2 ? kShortRowThreads : kThreads, .vector = kVector, .wide = i / 2};
      all[size_t(i)] = {config, min_blocks(config)};
    }
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &cumulative_sum_row<T, C>;
  }
};
template <class T>
struct Naive {
  static constexpr std::array list{Instance<Config>{{.threads = 128, .vector = 8}}};
  template <class C>
  static constexpr auto entry() {
    return &cumulative_sum_naive<T, C>;
  }
};

// The rung that the library would choose, and its plan.
template <class T>
std::pair<std::string_view, Planned> plan(const Params& p, int num_sms) {
  if (row_problem(p).empty() && row_doubt(p).empty())
    return {"row", row_plan(p, FloatingPoint<T>, int(sizeof(T)), num_sms)};
  return {"naive", naive_plan(p)};
}

}  // namespace detail::cumulative_sum

// How much memory lets blocks share a row if rows are too few to keep the current device busy;
// often 0.
template <class T>
size_t cumulative_sum_workspace_bytes(const T* in, int64_t rows, int64_t cols,
                                      DebugInfo where = {}) {
  namespace c = detail::cumulative_sum;
  if (rows == 0 || cols == 0) return 0;
  const int num_sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
  return c::plan<T>(c::contiguous_params(in, nullptr, rows, cols), num_sms).second.workspace_bytes;
}

// out[i] = in[0] + ... + in[i] along each of `rows` rows of `cols` elements, one after another. T:
// float, f16 or bf16, added in float, or an integer, which wraps; Out: T, or int64_t for integers.
// `workspace` has cumulative_sum_workspace_bytes() and belongs to this call until it is done; null
// is slower for few long rows and adds in another order. out may not be in. Returns the name of the
// variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Out>
std::string_view launch_cumulative_sum(const T* in, Out* out, int64_t rows, int64_t cols,
                                       void* workspace = nullptr, cudaStream_t stream = nullptr,
                                       DebugInfo where = {}) {
  namespace c = detail::cumulative_sum;
  constexpr const char* kLauncher = "launch_cumulative_sum";
  static_assert(std::is_same_v<Out, typename c::Sums<T>::Out>,
                "out is not of the type that sums of these elements have");
  validate_size(kLauncher, "rows", rows);
  validate_size(kLauncher, "cols", cols);
  if (rows == 0 || cols == 0) return {};
  validate_pointer(kLauncher, "in", in);
  validate_pointer(kLauncher, "out", out);
  const int num_sms =
      workspace ? device_attribute(cudaDevAttrMultiProcessorCount, where) : 0;  // 0: none share
  auto [variant, plan] = c::plan<T>(c::contiguous_params(in, out, rows, cols), num_sms);
  plan.params.workspace = workspace;
  if (plan.workspace_zeroed > 0)
    check_cuda(cudaMemsetAsync(workspace, 0, plan.workspace_zeroed, stream), where.file_name(),
               long(where.line()));
  if (variant == "row")
    return launch_or_fail<c::Rows<T>>(variant, plan.launch, plan.params, stream, where);
  return launch_or_fail<c::Naive<T>>(variant, plan.launch, plan.params, stream, where);
}

}  // namespace tensorcraft::kernels
