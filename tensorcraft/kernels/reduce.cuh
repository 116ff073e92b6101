// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/reduce/00_naive.cuh"
#include "tensorcraft/ops/reduce/01_row.cuh"
#include "tensorcraft/ops/reduce/02_column.cuh"
#include "tensorcraft/ops/reduce/plan.h"

// Reductions of row-major arrays. Compiled for each operation and T: row for 3 lengths and 2 widths
// of access, column for 4 and 2, naive (16 kernels).
namespace tensorcraft::kernels {
namespace detail::reduce {

using namespace kernel::reduce;

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.min_blocks)
    reduce_row(const __grid_constant__ Params p) {
  row<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.min_blocks)
    reduce_column(const __grid_constant__ Params p) {
  column<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    reduce_naive(const __grid_constant__ Params p) {
  naive<T, C::value.config>(p);
}

// The Configs that plans of row-major arrays have.
template <class T, Operation operation>
constexpr Instance<Config> instance(int group, int vector, bool is_row) {
  Config config{.operation = operation, .threads = kThreads, .group = group, .vector = vector};
  config.unroll = is_row && group < kThreads ? 4 : most_accesses(config, sizeof(T));
  return {config, blocks_per_sm(config)};
}
template <class T, Operation operation>
struct Rows {
  static constexpr int kVector = 16 / int(sizeof(T));
  static constexpr std::array list{
      instance<T, operation>(4, kVector, true),        instance<T, operation>(4, 1, true),
      instance<T, operation>(32, kVector, true),       instance<T, operation>(32, 1, true),
      instance<T, operation>(kThreads, kVector, true), instance<T, operation>(kThreads, 1, true)};
  template <class C>
  static constexpr auto entry() {
    return &reduce_row<T, C>;
  }
};
template <class T, Operation operation>
struct Columns {
  static constexpr int kVector = std::min(16 / int(sizeof(T)), 8);
  static constexpr std::array list{
      instance<T, operation>(4, kVector, false),  instance<T, operation>(4, 1, false),
      instance<T, operation>(8, kVector, false),  instance<T, operation>(8, 1, false),
      instance<T, operation>(16, kVector, false), instance<T, operation>(16, 1, false),
      instance<T, operation>(32, kVector, false), instance<T, operation>(32, 1, false)};
  template <class C>
  static constexpr auto entry() {
    return &reduce_column<T, C>;
  }
};
template <class T, Operation operation>
struct Naive {
  static constexpr std::array list{
      Instance<Config>{{.operation = operation, .threads = 128}},
      Instance<Config>{{.operation = operation, .threads = 128, .nested = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &reduce_naive<T, C>;
  }
};

// The rung that the library would choose, and its plan.
template <Operation operation, class T>
std::pair<std::string_view, Planned> plan(const Params& p, int num_sms) {
  if (column_problem(p).empty() && column_doubt(p).empty())
    return {"column", column_plan(p, operation, sizeof(T), num_sms)};
  if (row_problem(p).empty() && row_doubt(p).empty())
    return {"row", row_plan(p, operation, sizeof(T), num_sms)};
  return {"naive", naive_plan(p, operation)};
}

}  // namespace detail::reduce

// What becomes of the elements, by the names of the operators; count is the sum of bools.
using kernel::reduce::Operation;

// How much memory lets blocks share the outputs of a reduction, where those alone would leave the
// current device idle; often 0.
template <Operation operation, class T>
size_t reduce_workspace_bytes(const T* in, int64_t outer, int64_t reduced, int64_t inner,
                              DebugInfo where = {}) {
  namespace r = detail::reduce;
  if (outer == 0 || inner == 0) return 0;
  const int num_sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
  return r::plan<operation, T>(r::contiguous_params(in, nullptr, outer, reduced, inner), num_sms)
      .second.workspace_bytes;
}

// out[outer][inner] from in[outer][reduced][inner], both row-major, over the middle axis. T: float,
// f16, bf16 or an integer; Out is what the operator of this name gives: T for max and min and for
// floats, int64_t for argmax, count and sums of integers, bool for any and all. `correction` is
// that of var. `workspace` has reduce_workspace_bytes() and belongs to this call until it is done;
// null is slower for few outputs. Returns the name of the variant, empty where there is nothing to
// do. Errors and stream as launch_softmax.
template <Operation operation, class T, class Out>
std::string_view launch_reduce(const T* in, Out* out, int64_t outer, int64_t reduced, int64_t inner,
                               void* workspace = nullptr, float correction = 0,
                               cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace r = detail::reduce;
  static_assert(std::is_same_v<Out, typename r::Reducer<T, operation>::Out>,
                "out is not of the type that this operation gives");
  validate_size("launch_reduce", "outer", outer);
  validate_size("launch_reduce", "reduced", reduced);
  validate_size("launch_reduce", "inner", inner);
  if (outer == 0 || inner == 0) return {};
  if (reduced > 0) validate_pointer("launch_reduce", "in", in);
  validate_pointer("launch_reduce", "out", out);
  const int num_sms =
      workspace ? device_attribute(cudaDevAttrMultiProcessorCount, where) : 0;  // 0: none share
  auto [variant, plan] = r::plan<operation, T>(
      r::contiguous_params(in, out, outer, reduced, inner, correction), num_sms);
  plan.params.workspace = workspace;
  if (plan.workspace_zeroed > 0)
    check_cuda(cudaMemsetAsync(workspace, 0, plan.workspace_zeroed, stream), where.file_name(),
               long(where.line()));
  if (variant == "column")
    return launch_or_fail<r::Columns<T, operation>>(variant, plan.launch, plan.params, stream,
                                                    where);
  if (variant == "row")
    return launch_or_fail<r::Rows<T, operation>>(variant, plan.launch, plan.params, stream, where);
  return launch_or_fail<r::Naive<T, operation>>(variant, plan.launch, plan.params, stream, where);
}

}  // namespace tensorcraft::kernels
