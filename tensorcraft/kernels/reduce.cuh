// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/reduce/00_naive.cuh"
#include "tensorcraft/ops/reduce/01_row.cuh"
#include "tensorcraft/ops/reduce/02_column.cuh"
#include "tensorcraft/ops/reduce/combine.cuh"
#include "tensorcraft/ops/reduce/plan.h"

// Reductions of row-major arrays. Compiled for each operation and T: row for 4 lengths and 2 widths
// of access, column for 4 and 2, the long ones for blocks that share an output too, naive, and what
// joins their parts (33 kernels).
namespace tensorcraft::kernels {
namespace detail::reduce {

using namespace kernel::reduce;

// The Configs that plans of row-major arrays have.
template <class T, Operation operation>
constexpr Instance<Config> instance(int group, int vector, int unroll = 0, int shared = 0) {
  Config config{.operation = operation,
                .threads = kThreads,
                .group = group,
                .vector = vector,
                .shared = shared};
  config.unroll = unroll ? unroll : max_accesses(config, sizeof(T));
  return {config, blocks_per_sm(config)};
}
template <class T, Operation operation>
constexpr auto kRows = [] {
  constexpr int kVector = 16 / int(sizeof(T));
  std::array<Instance<Config>, 12> all{
      instance<T, operation>(4, kVector, 4), instance<T, operation>(4, 1, 4),
      instance<T, operation>(32, kVector, 4), instance<T, operation>(32, 1, 4)};
  size_t count = 4;
  for (const int shared : {0, 1})
    for (const int vector : {kVector, 1})
      for (const int unroll : {kFewAccesses, 0})
        all[count++] = instance<T, operation>(kThreads, vector, unroll, shared);
  return all;
}();
template <class T, Operation operation>
constexpr auto kColumns = [] {
  std::array<Instance<Config>, 16> all{};
  size_t count = 0;
  for (const int shared : {0, 1})
    for (const int group : {4, 8, 16, 32})
      for (const int vector : {std::min(16 / int(sizeof(T)), 8), 1})
        all[count++] = instance<T, operation>(group, vector, 0, shared);
  return all;
}();
template <Operation operation>
constexpr std::array kParts{Instance<Config>{{.operation = operation, .group = 1}},
                            Instance<Config>{{.operation = operation, .group = 32}},
                            Instance<Config>{{.operation = operation, .group = kThreads}}};
template <Operation operation>
constexpr std::array kSingle{
    Instance<Config>{{.operation = operation, .threads = 128}},
    Instance<Config>{{.operation = operation, .threads = 128, .nested = 1}}};

// The library's choice.
template <Operation operation, class T>
Taken<CallParams, Config> taken(const CallParams& p, const op::Gpu& gpu, DebugInfo where = {}) {
  return take(kRungs, p, Given{operation, int(sizeof(T))}, gpu, where);
}

}  // namespace detail::reduce

// The function of the elements, by the names of the operators; count is count_nonzero and the sum
// of bools, float_prod the product of integers as floats.
using kernel::reduce::Operation;

// How much memory lets blocks share the outputs of a reduction, if those alone would leave the
// current device idle; often 0.
template <Operation operation, class T>
size_t reduce_workspace_bytes(const T* in, int64_t outer, int64_t reduced, int64_t inner,
                              DebugInfo where = {}) {
  namespace r = detail::reduce;
  if (outer == 0 || inner == 0) return 0;
  const auto p = r::contiguous_params(in, nullptr, outer, reduced, inner);
  return r::workspace_bytes(r::taken<operation, T>(p, current_gpu(where), where).params);
}

// out[outer][inner] from in[outer][reduced][inner], both row-major, over the middle axis. T: float,
// f16, bf16 or an integer; Out is what the operator of this name gives: T for max and min and for
// floats, int64_t for argmax, argmin, count, and sums and products of integers, float for
// float_prod, bool for any and all. `correction` is that of var and std. `workspace` has
// reduce_workspace_bytes() and belongs to this call until it is done; null is slower for few
// outputs. Returns the name of the variant, empty if there is nothing to do. Errors and stream as
// launch_softmax.
template <Operation operation, class T, class Out>
std::string_view launch_reduce(const T* in, Out* out, int64_t outer, int64_t reduced, int64_t inner,
                               void* workspace = nullptr, float correction = 0,
                               cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace r = detail::reduce;
  static_assert(std::is_same_v<Out, typename r::Reducer<T, operation>::Out>,
                "out is not of the type that this operation gives");
  validate_sizes("launch_reduce", {{"outer", outer}, {"reduced", reduced}, {"inner", inner}});
  if (outer == 0 || inner == 0) return {};
  if (reduced > 0) validate_pointer("launch_reduce", "in", in);
  validate_pointer("launch_reduce", "out", out);
  const op::Gpu gpu =
      workspace ? current_gpu(where) : op::Gpu{};  // without multiprocessors: no blocks share
  auto [variant, start, p] = r::taken<operation, T>(
      r::contiguous_params(in, out, outer, reduced, inner, correction), gpu, where);
  p.workspace = workspace;
  if (variant == "column")
    launch_or_fail<Kernels<r::Column, r::kColumns<T, operation>, T>>(variant, start, p, stream,
                                                                     where);
  else if (variant == "row")
    launch_or_fail<Kernels<r::Row, r::kRows<T, operation>, T>>(variant, start, p, stream, where);
  else
    launch_or_fail<Kernels<r::Naive, r::kSingle<operation>, T>>(variant, start, p, stream, where);
  if (p.splits > 1)
    launch_or_fail<Kernels<r::Combine, r::kParts<operation>, T>>(
        variant, r::combine_start(p, operation), p, stream, where);
  return variant;
}

}  // namespace tensorcraft::kernels
